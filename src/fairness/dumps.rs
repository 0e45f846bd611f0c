//! Levels, queues and waiting requests as text, for people who investigate refusals.

use super::Fairness;
use super::flow::Reason;
use super::level::Level;

/// A text about the state of levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dump {
    /// A row for each level.
    PriorityLevels,
    /// A row for each queue in use.
    Queues,
    /// A row for each request that waits.
    Requests,
}

impl Dump {
    /// Returns the dump that a path names. `None` if the path names none.
    pub fn of(path: &str) -> Option<Self> {
        match path.strip_prefix("/debug/api_priority_and_fairness/")? {
            "dump_priority_levels" => Some(Self::PriorityLevels),
            "dump_queues" => Some(Self::Queues),
            "dump_requests" => Some(Self::Requests),
            _ => None,
        }
    }
}

const LEVELS: [&str; 10] = [
    "PriorityLevelName",
    "ActiveQueues",
    "IsIdle",
    "IsQuiescing",
    "WaitingRequests",
    "ExecutingRequests",
    "DispatchedRequests",
    "RejectedRequests",
    "TimedoutRequests",
    "CancelledRequests",
];

const QUEUES: [&str; 9] = [
    "PriorityLevelName",
    "Index",
    "PendingRequests",
    "ExecutingRequests",
    "SeatsInUse",
    "NextDispatchR",
    "InitialSeatsSum",
    "MaxSeatsSum",
    "TotalWorkSum",
];

const REQUESTS: [&str; 10] = [
    "PriorityLevelName",
    "FlowSchemaName",
    "QueueIndex",
    "RequestIndexInQueue",
    "FlowDistingsher",
    "ArriveTime",
    "InitialSeats",
    "FinalSeats",
    "AdditionalLatency",
    "StartTime",
];

impl Fairness {
    /// Returns a text about the state of levels.
    pub fn dump(&self, what: Dump) -> String {
        let levels = self.pool.levels();
        match what {
            Dump::PriorityLevels => table(&LEVELS, levels.iter().map(|level| self.row(level))),
            Dump::Queues => table(&QUEUES, levels.iter().flat_map(|level| queues(level))),
            Dump::Requests => table(&REQUESTS, levels.iter().flat_map(|level| requests(level))),
        }
    }

    fn row(&self, level: &Level) -> Vec<String> {
        let schemas = self.schemas.load();
        let sum = |count: &dyn Fn(&super::Counts) -> u64| {
            let of_level = schemas.flows().filter(|flow| flow.level.name == level.name);
            of_level.map(|flow| count(&flow.counts)).sum::<u64>()
        };
        let (executing, queues) = (level.executing(), level.queues.lock());
        let active = queues.in_use().into_iter().filter(|number| queues.waiting_in(*number).next().is_some()).count();
        let waiting = queues.waiting();
        let [full, limit, late, gone] = Reason::ALL.map(|why| sum(&|counts| counts.refused_for(why)));
        vec![
            level.name.to_string(),
            active.to_string(),
            (executing == 0 && waiting == 0).to_string(),
            "false".to_owned(),
            waiting.to_string(),
            executing.to_string(),
            sum(&super::Counts::dispatched).to_string(),
            (full + limit + late + gone).to_string(),
            late.to_string(),
            gone.to_string(),
        ]
    }
}

fn queues(level: &Level) -> Vec<Vec<String>> {
    let queues = level.queues.lock();
    let row = |number| {
        let (waiting, executing) = (queues.waiting_in(number).count(), queues.executing_from(number));
        vec![
            level.name.to_string(),
            (number.get() - 1).to_string(),
            waiting.to_string(),
            executing.to_string(),
            executing.to_string(),
            seat_seconds(queues.start_of(number)),
            waiting.to_string(),
            waiting.to_string(),
            seat_seconds(queues.expected_of(number)),
        ]
    };
    queues.in_use().into_iter().map(row).collect()
}

fn requests(level: &Level) -> Vec<Vec<String>> {
    let queues = level.queues.lock();
    let mut rows = Vec::new();
    for number in queues.in_use() {
        for (at, waiter) in queues.waiting_in(number).enumerate() {
            rows.push(vec![
                level.name.to_string(),
                waiter.schema.to_string(),
                (number.get() - 1).to_string(),
                at.to_string(),
                waiter.distinguisher.to_string(),
                waiter.since.micro(),
                "1".to_owned(),
                "0".to_owned(),
                "0s".to_owned(),
                "0001-01-01T00:00:00Z".to_owned(), // it has not begun
            ]);
        }
    }
    rows
}

fn seat_seconds(nanos: u64) -> String {
    format!("{:.8}ss", nanos as f64 / 1e9)
}

/// Writes rows in columns as wide as their widest cell, at least eight characters.
fn table(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut all = vec![heads.iter().map(|head| (*head).to_owned()).collect::<Vec<_>>()];
    all.extend(rows);
    for row in &mut all {
        let last = row.len().saturating_sub(1);
        row[..last].iter_mut().for_each(|cell| cell.push(','));
    }
    let width = |column: usize| all.iter().map(|row| row[column].chars().count() + 1).max().unwrap_or(0).max(8);
    let widths: Vec<usize> = (0..heads.len().saturating_sub(1)).map(width).collect();
    let mut text = String::new();
    for row in &all {
        let (last, cells) = row.split_last().unwrap_or((&row[0], &[]));
        for (cell, width) in cells.iter().zip(&widths) {
            text.push_str(&format!("{cell:<width$}"));
        }
        text.push_str(last);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_requests_has_idle_levels_and_no_queues() {
        let fairness = Fairness::new(600);
        let text = fairness.dump(Dump::of("/debug/api_priority_and_fairness/dump_priority_levels").unwrap());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(
            lines[0].starts_with("PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, "),
            "{text}"
        );
        assert!(lines[1].starts_with("catch-all,         0,            true,   false,       0,"), "{text}");
        assert_eq!(fairness.dump(Dump::Queues).lines().count(), 1);
        assert_eq!(fairness.dump(Dump::Requests).lines().count(), 1);
        assert_eq!(Dump::of("/debug/api_priority_and_fairness/"), None);
    }
}
