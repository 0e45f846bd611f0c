//! State that all tasks of a run share: connections, clock, records and checks.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::TryStreamExt as _;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::check::{Broken, Checked};
use super::follower::Follower;
use super::items::Items;
use super::load::Load;
use super::mark::Object;
use super::pool::Pool;
use super::record::{Kind, Recorder, Times};
use super::timer::Timer;
use crate::connection::{Answer, Call, Connector, Error};
use crate::limits;
use crate::operation::micros;

/// The part of a scenario that a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The number of the part, from 1 on.
    pub number: usize,
    /// The number of parts.
    pub of: usize,
}

impl Part {
    /// Returns the numbers below `count` that belong to this part.
    pub fn numbers(self, count: usize) -> impl ExactSizeIterator<Item = usize> + Clone {
        (self.number - 1..count).step_by(self.of)
    }

    /// Returns the number below `count` for a request of this part. The requests go through the numbers of the part in
    /// turn. Returns `None` if the part has no numbers.
    pub fn number_of(self, request: usize, count: usize) -> Option<usize> {
        let own = self.numbers(count).len();
        self.numbers(count).nth((request / self.of).checked_rem(own)?)
    }
}

impl std::str::FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if 1 <= number && number <= of && of <= limits::PARTS_MAX => Ok(Self { number, of }),
            _ => Err(format!("{text:?} is not NUMBER/COUNT, as in 1/4, with up to {} parts", limits::PARTS_MAX)),
        }
    }
}

/// The stage of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Objects are created before the first phase.
    Setup,
    /// A phase, by its number.
    Phase(usize),
    /// The last phase has ended, and no new work starts.
    Over,
}

/// A run.
pub struct Run {
    /// Opens connections to the server.
    pub connector: Arc<Connector>,
    /// The connections that requests share.
    pub pool: Pool,
    /// The namespace for all objects.
    pub namespace: String,
    /// The part that this process runs.
    pub part: Part,
    /// The seed of random choices.
    pub seed: u64,
    /// A part of names that differs between runs.
    pub id: String,
    /// The load over time.
    pub load: Load,
    /// Waits for points in time, precisely.
    pub timer: Timer,
    /// The records of operations.
    pub recorder: RefCell<Recorder>,
    /// The results of checks so far.
    pub checked: Checked,
    stage: watch::Sender<Stage>,
    begin: Cell<Option<Instant>>,
    /// One point in time on both clocks.
    clocks: (Instant, u64),
    /// The last acknowledged revision of each resource.
    acknowledged: RefCell<HashMap<String, u64>>,
    /// Tasks that outlast the action that started them, as deletions do.
    later: RefCell<JoinSet<()>>,
    /// The number of open watches.
    pub watches: Cell<u64>,
    /// All watches.
    pub followers: RefCell<Vec<Rc<Follower>>>,
    /// The numbers of phases that start with closing all connections of watches.
    pub reconnects: Vec<usize>,
    /// The number of nodes that were created, from number 0 on.
    pub nodes: Cell<usize>,
}

impl Run {
    /// Makes a run that has not started.
    pub fn new(
        connector: Arc<Connector>,
        (namespace, part, seed): (String, Part, u64),
        (load, recorder): (Load, Recorder),
        (connections, reconnects): (usize, Vec<usize>),
    ) -> std::io::Result<Self> {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, micros);
        Ok(Self {
            pool: Pool::new(connector.clone(), connections),
            connector,
            namespace,
            part,
            seed,
            id: format!("{:x}-{}", unix / 1_000, part.number),
            load,
            timer: Timer::start()?,
            recorder: RefCell::new(recorder),
            checked: Checked::default(),
            stage: watch::Sender::new(Stage::Setup),
            begin: Cell::new(None),
            clocks: (Instant::now(), unix),
            acknowledged: RefCell::default(),
            later: RefCell::default(),
            watches: Cell::new(0),
            followers: RefCell::default(),
            reconnects,
            nodes: Cell::new(0),
        })
    }

    /// Converts a point in time to microseconds of Unix time.
    pub fn unix_micros(&self, at: Instant) -> u64 {
        match at.checked_duration_since(self.clocks.0) {
            Some(after) => self.clocks.1 + micros(after),
            None => self.clocks.1.saturating_sub(micros(self.clocks.0.saturating_duration_since(at))),
        }
    }

    /// Converts microseconds of Unix time to a point in time.
    pub fn instant(&self, unix_micros: u64) -> Instant {
        let (at, unix) = self.clocks;
        let before = at.checked_sub(Duration::from_micros(unix.saturating_sub(unix_micros))).unwrap_or(at);
        before + Duration::from_micros(unix_micros.saturating_sub(unix))
    }

    /// Starts the first phase.
    pub fn begin(&self, at: Instant) {
        self.begin.set(Some(at));
        self.recorder.borrow_mut().begin(at);
        self.stage.send_replace(Stage::Phase(0));
    }

    /// Returns when the first phase started, or the present time before that.
    pub fn began(&self) -> Instant {
        self.begin.get().unwrap_or_else(Instant::now)
    }

    /// Returns the seconds since the start of the first phase.
    pub fn seconds(&self) -> f64 {
        self.began().elapsed().as_secs_f64()
    }

    /// Enters a stage.
    pub fn enter(&self, stage: Stage) {
        self.stage.send_replace(stage);
    }

    /// Returns a receiver that shows the current stage and all later ones.
    pub fn stages(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }

    /// Returns whether no new work may start.
    pub fn is_over(&self) -> bool {
        *self.stage.borrow() == Stage::Over
    }

    /// Waits until the first phase starts.
    pub async fn begun(&self) {
        let _ = self.stages().wait_for(|stage| *stage != Stage::Setup).await;
    }

    /// Waits until a point in time, or until the last phase ends. Returns `false` if the last phase has ended.
    pub async fn waited(&self, until: Instant) -> bool {
        let mut stages = self.stages();
        tokio::select! {
            () = self.timer.until(until) => !self.is_over(),
            _ = stages.wait_for(|stage| *stage == Stage::Over) => false,
        }
    }

    /// Starts a task that outlasts its caller. [`Run::ended`] waits for it.
    pub fn later(&self, task: impl Future<Output = ()> + 'static) {
        let mut tasks = self.later.borrow_mut();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_local(task);
    }

    /// Waits for all tasks that [`Run::later`] has started.
    pub async fn ended(&self) {
        loop {
            let mut tasks = self.later.take();
            if tasks.is_empty() {
                return;
            }
            while tasks.join_next().await.is_some() {}
        }
    }

    /// Sends a request that was due at a time, and records its latency or failure. Returns the answer if its status is
    /// a success or one of `allowed`.
    pub async fn ask(&self, kind: Kind, due: Instant, call: &Call, allowed: &[u16]) -> Option<Answer> {
        let sent = Instant::now();
        let answer = self.pool.call(call).await;
        let done = Instant::now();
        self.outcome(kind, Times { due, sent, done }, call, answer, allowed)
    }

    /// Records the result of a request. Returns the answer if its status is a success or one of `allowed`.
    pub fn outcome(
        &self,
        kind: Kind,
        times: Times,
        call: &Call,
        answer: Result<Answer, Error>,
        allowed: &[u16],
    ) -> Option<Answer> {
        let mut recorder = self.recorder.borrow_mut();
        match answer {
            Ok(answer) if answer.status.is_success() || allowed.contains(&answer.status.as_u16()) => {
                recorder.success(kind, times);
                return Some(answer);
            }
            Ok(answer) => {
                let sort = format!("HTTP {}", answer.status.as_u16());
                recorder.failure(kind, times.due, &sort, || {
                    let body = String::from_utf8_lossy(&answer.body[..answer.body.len().min(300)]).into_owned();
                    format!("{} {}: {} {body}", call.method, call.path, answer.status)
                });
            }
            Err(error) => {
                let sort = match &error {
                    Error::Timeout => "timeout",
                    _ => "connection",
                };
                recorder.failure(kind, times.due, sort, || format!("{} {}: {error}", call.method, call.path));
            }
        }
        None
    }

    /// Parses the object in an answer, and calls `look`. If either fails, records a violation and returns `None`.
    pub fn answered<T>(
        &self,
        call: &Call,
        answer: &Answer,
        look: impl FnOnce(&Object<'_>) -> Result<T, String>,
    ) -> Option<T> {
        self.checked.answers.set(self.checked.answers.get() + 1);
        let object = serde_json::from_slice::<Object<'_>>(&answer.body).map_err(|error| error.to_string());
        match object.and_then(|object| look(&object)) {
            Ok(seen) => Some(seen),
            Err(what) => {
                self.broken(Broken::WrongBody, || format!("{} {}: {what}", call.method, call.path));
                None
            }
        }
    }

    /// Records a violation.
    pub fn broken(&self, broken: Broken, what: impl FnOnce() -> String) {
        self.checked.violations.borrow_mut().add(broken, what);
    }

    /// Records that the server acknowledged a write of this resource at this revision.
    pub fn acknowledge(&self, path: &str, revision: u64) {
        let mut acknowledged = self.acknowledged.borrow_mut();
        let resource = resource(path);
        match acknowledged.get_mut(&*resource) {
            Some(last) => *last = revision.max(*last),
            None => drop(acknowledged.insert(resource.into_owned(), revision)),
        }
    }

    /// Returns the last acknowledged revision of a resource.
    pub fn acknowledged(&self, path: &str) -> u64 {
        self.acknowledged.borrow().get(&*resource(path)).copied().unwrap_or(0)
    }

    /// Checks a list that was requested when `acknowledged` was the last acknowledged revision. Returns the token of
    /// the next page.
    pub fn listed(&self, call: &Call, answer: &Answer, acknowledged: u64) -> Option<String> {
        let mut items = Items::default();
        let is_list = items.push(&answer.body, |_| {});
        let is_whole = answer.body.len() as u64 == answer.bytes;
        self.checked.answers.set(self.checked.answers.get() + 1);
        match items.metadata() {
            Some((revision, _)) if revision < acknowledged => {
                let what = || format!("{}: {revision}, after {acknowledged} was acknowledged", call.path);
                self.broken(Broken::Stale, what);
                None
            }
            Some((_, next)) => Some(next).filter(|next| !next.is_empty()),
            None => {
                // For a long list, only the beginning was kept, without the metadata at its end.
                if is_whole || !is_list {
                    self.broken(Broken::WrongBody, || format!("{}: the answer is not a list", call.path));
                }
                None
            }
        }
    }

    /// Runs a task for each number, many at the same time. Ends with the first error.
    pub async fn each<F>(&self, numbers: impl Iterator<Item = usize>, task: impl Fn(usize) -> F) -> Result<(), Error>
    where
        F: Future<Output = Result<(), Error>>,
    {
        let tasks = futures_util::stream::iter(numbers.map(|number| Ok(task(number))));
        tasks.try_for_each_concurrent(limits::SETUP_CONCURRENCY, |task| task).await
    }

    /// Sends a request that the run depends on.
    ///
    /// # Errors
    /// Fails if the status is neither a success nor one of `allowed`.
    pub async fn must(&self, call: &Call, allowed: &[u16]) -> Result<Answer, Error> {
        self.pool.call(call).await?.expected(call, allowed)
    }

    /// Replaces the names in braces in a path.
    pub fn path(&self, template: &str, number: usize) -> String {
        let node = super::actors::node_name(number);
        template.replace("{namespace}", &self.namespace).replace("{node}", &node)
    }
}

/// Returns the path of a resource without the namespace, the object's name and the query.
fn resource(path: &str) -> std::borrow::Cow<'_, str> {
    let path = path.split('?').next().unwrap_or(path);
    match path.split_once("/namespaces/") {
        Some((prefix, rest)) if rest.contains('/') => {
            let kind = rest.split('/').nth(1).unwrap_or_default();
            format!("{prefix}/{kind}").into()
        }
        _ => path.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_divide_all_numbers() {
        let mut all: Vec<usize> =
            (1..=4).flat_map(|number| Part { number, of: 4 }.numbers(10).collect::<Vec<_>>()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
        for part in (1..=3).map(|number| Part { number, of: 3 }) {
            let found: Vec<_> = (part.number - 1..30).step_by(3).map(|request| part.number_of(request, 10)).collect();
            let own: Vec<_> = part.numbers(10).map(Some).cycle().take(10).collect();
            assert_eq!(found, own);
        }
        assert_eq!(Part { number: 3, of: 3 }.number_of(2, 2), None);
        assert_eq!("2/4".parse(), Ok(Part { number: 2, of: 4 }));
        for text in ["0/4", "5/4", "1", "a/b", "1/0"] {
            assert!(text.parse::<Part>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_resource_is_the_same_in_every_namespace() {
        for path in ["/api/v1/pods?limit=5", "/api/v1/namespaces/a/pods", "/api/v1/namespaces/a/pods/b/status"] {
            assert_eq!(resource(path), "/api/v1/pods", "{path}");
        }
        assert_eq!(resource("/api/v1/nodes"), "/api/v1/nodes");
    }
}
