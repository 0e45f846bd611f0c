//! The actor `reflector`: clients that list, watch, and remember the received objects.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use tokio::task::JoinSet;

use super::Task;
use crate::connection::{Connector, Error};
use crate::limits;
use crate::numbers::Numbers;
use crate::scenario::check::{Broken, Seen};
use crate::scenario::file::Reflector;
use crate::scenario::follower::{Follower, Kinds, list};
use crate::scenario::pool::Pool;
use crate::scenario::result::Since;
use crate::scenario::run::{Run, Stage};

/// The watches of one actor.
struct Group {
    run: Rc<Run>,
    how: Rc<Reflector>,
    followers: Vec<Rc<Follower>>,
    connector: Arc<Connector>,
    connections: usize,
}

/// Starts the watches, unless they must start together with the first phase. Returns the task that keeps them running.
pub async fn prepare(run: &Rc<Run>, name: String, how: &Reflector) -> Result<Task, Error> {
    let group = Group::new(run, &name, how);
    run.followers.borrow_mut().extend(group.followers.iter().cloned());
    let mut tasks = JoinSet::new();
    if !how.herd {
        let (start, before) = (Instant::now(), run.watches.get());
        let is_open = || run.watches.get() >= before + group.followers.len() as u64;
        let is_synced = || group.followers.iter().all(|follower| follower.watched.borrow().is_synced);
        group.begin(&mut tasks, start);
        while !(is_open() && is_synced()) {
            if start.elapsed() > limits::START_WAIT {
                let first = run.checked.violations.borrow().examples.first().cloned().unwrap_or_default();
                return Err(Error::Start(format!("watches of {name} do not begin: {first}")));
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
    Ok(Box::pin(async move { group.go_on(tasks).await }))
}

impl Group {
    fn new(run: &Rc<Run>, name: &str, how: &Reflector) -> Self {
        let kinds = {
            let mut recorder = run.recorder.borrow_mut();
            Kinds {
                sync: recorder.kind(&format!("{name}/sync"), Since::Due),
                resume: recorder.kind(&format!("{name}/resume"), Since::Due),
                delivery: recorder.kind(&format!("{name}/delivery"), Since::Due),
            }
        };
        let (shared, mut followers) = (Rc::new(how.clone()), Vec::new());
        for (place, number) in run.part.numbers(how.count).enumerate() {
            for (at, path) in how.paths.iter().enumerate() {
                let connection =
                    if how.own_connection { place } else { followers.len() / limits::WATCHES_PER_CONNECTION_MAX };
                followers.push(Rc::new(Follower {
                    name: format!("{name} {number}.{at}"),
                    path: run.path(path, number),
                    watched: RefCell::default(),
                    connection,
                    how: shared.clone(),
                    kinds,
                    has_synced: Cell::new(false),
                }));
            }
        }
        let connections = followers.last().map_or(1, |last| last.connection + 1);
        let connector = match how.read_bytes_per_second {
            0 => run.connector.clone(),
            _ => Arc::new(run.connector.with_window(limits::SLOW_WINDOW_BYTES)),
        };
        Self { run: run.clone(), how: shared, followers, connector, connections }
    }

    /// Starts every watch, on new connections.
    fn begin(&self, tasks: &mut JoinSet<()>, since: Instant) {
        let pool = Rc::new(Pool::new(self.connector.clone(), self.connections));
        for follower in &self.followers {
            tasks.spawn_local(follower.clone().follow(self.run.clone(), pool.clone(), since));
        }
    }

    /// Keeps the watches running, and restarts them when a phase closes their connections.
    async fn go_on(&self, mut tasks: JoinSet<()>) {
        let mut stages = self.run.stages();
        self.run.begun().await;
        if self.how.herd {
            self.begin(&mut tasks, self.run.began());
        }
        loop {
            let stage = *stages.borrow_and_update();
            if let Stage::Phase(number) = stage
                && self.run.reconnects.contains(&number)
            {
                tasks.abort_all();
                while tasks.join_next().await.is_some() {}
                self.begin(&mut tasks, Instant::now());
            }
            if stages.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Compares the received states of watches with lists, until no difference is left or the time is over. Returns the
/// number of compared watches.
pub async fn compare(run: &Rc<Run>) -> u64 {
    let mut pending = chosen(run);
    let (compared, start) = (pending.len() as u64, Instant::now());
    loop {
        let paths: Vec<String> = pending.iter().map(|follower| follower.path.clone()).collect();
        let mut distinct = paths.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let lists = RefCell::new(HashMap::<String, HashMap<u64, Seen>>::new());
        let outcome = run.each(0..distinct.len(), |at| {
            let (path, lists, run) = (&distinct[at], &lists, &run);
            async move {
                let found = list(run, path).await?;
                lists.borrow_mut().insert(path.clone(), found);
                Ok(())
            }
        });
        let failure = outcome.await.err();
        let lists = lists.into_inner();
        pending.retain(|follower| difference(follower, lists.get(&follower.path)).is_some());
        if pending.is_empty() {
            return compared;
        }
        if start.elapsed() > limits::COMPARE_WAIT {
            for follower in &pending {
                let what = difference(follower, lists.get(&follower.path)).unwrap_or_default();
                let failure = failure.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
                run.broken(Broken::Lost, || format!("{}: {what}{failure}", follower.name));
            }
            return compared;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

fn difference(follower: &Follower, list: Option<&HashMap<u64, Seen>>) -> Option<String> {
    let watched = follower.watched.borrow();
    match list {
        _ if !watched.is_synced => Some("never received all initial objects".into()),
        None => Some("no list to compare with".into()),
        Some(list) => watched.difference(list),
    }
}

/// Chooses the watches to compare: all watches of an actor that has few, and some of an actor that has many.
fn chosen(run: &Run) -> Vec<Rc<Follower>> {
    let mut actors = BTreeMap::<String, Vec<Rc<Follower>>>::new();
    for follower in run.followers.borrow().iter() {
        let actor = follower.name.split(' ').next().unwrap_or_default();
        actors.entry(actor.to_owned()).or_default().push(follower.clone());
    }
    let mut numbers = Numbers::named(run.seed, "compared");
    for followers in actors.values_mut() {
        while followers.len() > limits::COMPARED_WATCHES_MAX {
            let at = numbers.below(followers.len());
            followers.swap_remove(at);
        }
    }
    actors.into_values().flatten().collect()
}
