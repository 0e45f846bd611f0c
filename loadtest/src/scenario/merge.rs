//! Combines the results of a scenario's parts.

use std::collections::BTreeSet;

use super::result::{Error, Operation, Percentiles, RunResult, Sample, histogram, pairs};

/// The largest difference between the starts of two parts, in microseconds. Their figures are added second by second.
const APART_MICROS_MAX: u64 = 2_000_000;

/// Combines the results of all parts.
///
/// # Errors
/// Fails if the results are not all parts of one run.
pub fn merge(results: Vec<RunResult>) -> Result<RunResult, Error> {
    let apart = |what: String| Err(Error::Apart(what));
    let mut results = results.into_iter();
    let Some(mut sum) = results.next() else { return apart("no result was given".into()) };
    let of = sum.part[1];
    let mut parts = BTreeSet::from([sum.part[0]]);
    for result in results {
        let same = |one: &RunResult| {
            (one.scenario.clone(), one.definition.clone(), one.changes.clone(), one.seed, one.part[1])
        };
        if same(&result) != same(&sum) {
            return apart(format!(
                "part {} has another scenario, seed or number of parts than part {}",
                result.part[0], sum.part[0]
            ));
        }
        if result.started_micros.abs_diff(sum.started_micros) > APART_MICROS_MAX {
            return apart(format!("part {} began at another time; give all parts the same --begin-at", result.part[0]));
        }
        if !parts.insert(result.part[0]) {
            return apart(format!("part {} was given twice", result.part[0]));
        }
        add(&mut sum, &result);
    }
    if parts.len() != of as usize {
        return apart(format!("parts {parts:?} are not all of the {of} parts"));
    }
    sum.part = [1, 1];
    Ok(sum)
}

fn add(sum: &mut RunResult, other: &RunResult) {
    for (name, operation) in &other.operations {
        match sum.operations.get_mut(name) {
            Some(own) => own.add(operation),
            None => drop(sum.operations.insert(name.clone(), operation.clone())),
        }
    }
    let mut lag = histogram(&sum.lag);
    other.lag.iter().for_each(|(micros, count)| lag.saturating_record_n(*micros, *count));
    sum.lag = pairs(&lag);
    add_samples(&mut sum.samples, &other.samples);
    let (own, theirs) = (&mut sum.checks, &other.checks);
    own.events += theirs.events;
    own.compared += theirs.compared;
    own.watches += theirs.watches;
    own.answers += theirs.answers;
    own.expired += theirs.expired;
    own.resumed += theirs.resumed;
    own.violations.merge(&theirs.violations);
    sum.gave_up |= other.gave_up;
}

/// All parts measure the same server, so its figures are not added. Those of the harness are.
fn add_samples(own: &mut [Sample], other: &[Sample]) {
    for (own, other) in own.iter_mut().zip(other) {
        own.own_cpu_seconds += other.own_cpu_seconds;
        own.own_resident_bytes += other.own_resident_bytes;
        own.watches += other.watches;
        own.server_cpu_seconds = own.server_cpu_seconds.or(other.server_cpu_seconds);
        own.server_resident_bytes = own.server_resident_bytes.or(other.server_resident_bytes);
    }
}

impl Operation {
    /// Adds the figures of another part.
    fn add(&mut self, other: &Self) {
        self.count += other.count;
        for (sort, count) in &other.errors {
            *self.errors.entry(sort.clone()).or_default() += count;
        }
        self.examples.extend(other.examples.iter().cloned());
        for (own, other, percentiles) in [
            (&mut self.histogram, &other.histogram, &mut self.latency),
            (&mut self.service_histogram, &other.service_histogram, &mut self.service),
        ] {
            let mut all = histogram(own);
            other.iter().for_each(|(micros, count)| all.saturating_record_n(*micros, *count));
            (*own, *percentiles) = (pairs(&all), Percentiles::of(&all));
        }
        if self.windows.len() < other.windows.len() {
            self.windows.resize(other.windows.len(), Default::default());
        }
        self.windows.iter_mut().zip(&other.windows).for_each(|(own, other)| own.merge(other));
    }
}

#[cfg(test)]
pub mod tests {
    use super::super::result::{SCHEMA, Since, Window};
    use super::*;
    use crate::report;

    /// Returns a result with one operation and no requests.
    pub fn empty() -> RunResult {
        let operation = Operation {
            since: Since::Due,
            count: 0,
            errors: Default::default(),
            examples: Vec::new(),
            latency: Percentiles::default(),
            service: Percentiles::default(),
            histogram: Vec::new(),
            service_histogram: Vec::new(),
            windows: Vec::new(),
        };
        RunResult {
            schema: SCHEMA,
            scenario: "s".into(),
            about: String::new(),
            definition: String::new(),
            changes: Vec::new(),
            seed: 1,
            part: [1, 1],
            started_micros: 0,
            seconds: 10.0,
            window_seconds: 1.0,
            server: "v1".into(),
            phases: Vec::new(),
            operations: [("get".to_owned(), operation)].into(),
            lag: Vec::new(),
            samples: Vec::new(),
            checks: Default::default(),
            gave_up: false,
        }
    }

    /// Returns a result whose requests took this many microseconds.
    pub fn taking(micros: impl Iterator<Item = u64>) -> RunResult {
        let (mut all, mut window, mut result) = (report::histogram(), Window::default(), empty());
        micros.for_each(|micros| {
            all.record(micros).unwrap();
            window.record(micros);
        });
        let operation = result.operations.get_mut("get").unwrap();
        operation.count = all.len();
        operation.latency = Percentiles::of(&all);
        operation.histogram = pairs(&all);
        operation.windows = vec![window];
        result
    }

    #[test]
    fn parts_are_combined() {
        let part = |number: u32, from: u64| {
            let mut result = taking((from..from + 100).map(|n| n * 10));
            result.part = [number, 2];
            result.operations.get_mut("get").unwrap().errors.insert("HTTP 500".into(), 2);
            result.checks.events = 5;
            result
        };
        let sum = merge(vec![part(2, 101), part(1, 1)]).unwrap();
        let whole = taking((1..=200).map(|n| n * 10));
        let (sum, whole) = (&sum.operations["get"], &whole.operations["get"]);
        assert_eq!(sum.count, 200);
        assert_eq!((sum.latency.p50, sum.latency.p99, sum.latency.max), {
            (whole.latency.p50, whole.latency.p99, whole.latency.max)
        });
        assert_eq!(sum.windows, whole.windows);
        assert_eq!(sum.errors["HTTP 500"], 4);
        for wrong in [vec![part(1, 1)], vec![part(1, 1), part(1, 1)], vec![part(1, 1), taking(1..2)], vec![]] {
            assert!(merge(wrong).is_err());
        }
        let mut later = part(2, 1);
        later.started_micros = 60_000_000;
        assert!(merge(vec![part(1, 1), later]).unwrap_err().to_string().contains("--begin-at"));
    }
}
