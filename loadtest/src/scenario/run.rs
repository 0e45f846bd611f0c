//! What everything that happens in a run shares: the server, the clock, the records, the checks.

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

/// Which share of a scenario a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// From 1 on.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

impl Part {
    /// The numbers below `count` that are this process's.
    pub fn numbers(self, count: usize) -> impl Iterator<Item = usize> + Clone {
        (self.number - 1..count).step_by(self.of)
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

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// What is there before the first phase is being made.
    Setup,
    /// A phase, by its number.
    Phase(usize),
    /// Nothing new begins.
    Over,
}

/// A run.
pub struct Run {
    /// How to reach the server.
    pub connector: Arc<Connector>,
    /// The connections that requests share.
    pub pool: Pool,
    /// The namespace for everything.
    pub namespace: String,
    /// This process's share.
    pub part: Part,
    /// What chance is drawn from.
    pub seed: u64,
    /// Tells names of this run from those of others.
    pub id: String,
    /// The load over time.
    pub load: Load,
    /// Waits exactly.
    pub timer: Timer,
    /// What is recorded.
    pub recorder: RefCell<Recorder>,
    /// What is checked.
    pub checked: Checked,
    stage: watch::Sender<Stage>,
    begin: Cell<Option<Instant>>,
    /// A point in time by both clocks.
    clocks: (Instant, u64),
    /// The last revision that was acknowledged, by resource.
    acknowledged: RefCell<HashMap<String, u64>>,
    /// What goes on beside: ends of lives.
    later: RefCell<JoinSet<()>>,
    /// Watches that are open.
    pub watches: Cell<u64>,
    /// All watches.
    pub followers: RefCell<Vec<Rc<Follower>>>,
    /// The phases that begin with the loss of all connections of watches.
    pub reconnects: Vec<usize>,
    /// How many nodes were made, from number 0 on.
    pub nodes: Cell<usize>,
}

impl Run {
    /// A run that has not begun.
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

    /// A point in time in microseconds of Unix time.
    pub fn unix_micros(&self, at: Instant) -> u64 {
        match at.checked_duration_since(self.clocks.0) {
            Some(after) => self.clocks.1 + micros(after),
            None => self.clocks.1.saturating_sub(micros(self.clocks.0.saturating_duration_since(at))),
        }
    }

    /// The point in time of microseconds of Unix time.
    pub fn instant(&self, unix_micros: u64) -> Instant {
        let (at, unix) = self.clocks;
        let before = at.checked_sub(Duration::from_micros(unix.saturating_sub(unix_micros))).unwrap_or(at);
        before + Duration::from_micros(unix_micros.saturating_sub(unix))
    }

    /// Begins the first phase.
    pub fn begin(&self, at: Instant) {
        self.begin.set(Some(at));
        self.recorder.borrow_mut().begin(at);
        self.stage.send_replace(Stage::Phase(0));
    }

    /// When the first phase began; now, as long as it did not.
    pub fn began(&self) -> Instant {
        self.begin.get().unwrap_or_else(Instant::now)
    }

    /// Seconds since the first phase began.
    pub fn seconds(&self) -> f64 {
        self.began().elapsed().as_secs_f64()
    }

    /// Enters a stage.
    pub fn enter(&self, stage: Stage) {
        self.stage.send_replace(stage);
    }

    /// Follows the stages from the present one on.
    pub fn stages(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }

    /// Whether nothing new is to begin.
    pub fn is_over(&self) -> bool {
        *self.stage.borrow() == Stage::Over
    }

    /// Waits until the first phase begins.
    pub async fn begun(&self) {
        let _ = self.stages().wait_for(|stage| *stage != Stage::Setup).await;
    }

    /// Waits until a point in time, but not beyond the last phase. Whether that is still going on.
    pub async fn waited(&self, until: Instant) -> bool {
        let mut stages = self.stages();
        tokio::select! {
            () = self.timer.until(until) => !self.is_over(),
            _ = stages.wait_for(|stage| *stage == Stage::Over) => false,
        }
    }

    /// Has something go on beside, which is waited for in the end.
    pub fn later(&self, task: impl Future<Output = ()> + 'static) {
        let mut tasks = self.later.borrow_mut();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_local(task);
    }

    /// Waits for what goes on beside.
    pub async fn ended(&self) {
        loop {
            let mut tasks = self.later.take();
            if tasks.is_empty() {
                return;
            }
            while tasks.join_next().await.is_some() {}
        }
    }

    /// Asks what was due at a time, and records how long it took or how it failed. The answer, if it is a success or
    /// has one of the statuses that are allowed.
    pub async fn ask(&self, kind: Kind, due: Instant, call: &Call, allowed: &[u16]) -> Option<Answer> {
        let sent = Instant::now();
        let answer = self.pool.call(call).await;
        let done = Instant::now();
        self.outcome(kind, Times { due, sent, done }, call, answer, allowed)
    }

    /// Records an outcome.
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

    /// Reads the object of an answer and hands it on; names what is wrong with it.
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

    /// Notes that a promise was broken.
    pub fn broken(&self, broken: Broken, what: impl FnOnce() -> String) {
        self.checked.violations.borrow_mut().add(broken, what);
    }

    /// Notes that the server acknowledged a write of a resource at a revision.
    pub fn acknowledge(&self, path: &str, revision: u64) {
        let mut acknowledged = self.acknowledged.borrow_mut();
        let resource = resource(path);
        match acknowledged.get_mut(&*resource) {
            Some(last) => *last = revision.max(*last),
            None => drop(acknowledged.insert(resource.into_owned(), revision)),
        }
    }

    /// The last revision of a resource that was acknowledged so far.
    pub fn acknowledged(&self, path: &str) -> u64 {
        self.acknowledged.borrow().get(&*resource(path)).copied().unwrap_or(0)
    }

    /// Looks at a list that was asked for when `acknowledged` was the last revision. Where its next page begins.
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
                // Of a long list whose metadata is at its end only the beginning was kept.
                if is_whole || !is_list {
                    self.broken(Broken::WrongBody, || format!("{}: the answer is no list", call.path));
                }
                None
            }
        }
    }

    /// Does something for each of some numbers, many at a time. The first error ends it.
    pub async fn each<F>(&self, numbers: impl Iterator<Item = usize>, task: impl Fn(usize) -> F) -> Result<(), Error>
    where
        F: Future<Output = Result<(), Error>>,
    {
        let tasks = futures_util::stream::iter(numbers.map(|number| Ok(task(number))));
        tasks.try_for_each_concurrent(limits::SETUP_CONCURRENCY, |task| task).await
    }

    /// Asks for something that the run depends on.
    pub async fn must(&self, call: &Call, allowed: &[u16]) -> Result<Answer, Error> {
        self.pool.call(call).await?.expected(call, allowed)
    }

    /// A path with names in the place of words in braces.
    pub fn path(&self, template: &str, number: usize) -> String {
        let node = super::actors::node_name(number);
        template.replace("{namespace}", &self.namespace).replace("{node}", &node)
    }
}

/// The path of a resource without namespace, name of a collection's object, and query.
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
    fn parts_share_all_numbers() {
        let mut all: Vec<usize> =
            (1..=4).flat_map(|number| Part { number, of: 4 }.numbers(10).collect::<Vec<_>>()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
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
