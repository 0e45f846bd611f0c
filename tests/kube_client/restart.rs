//! A watcher and a reflector while the server is killed again and again: every change arrives once, and nothing is
//! listed a second time.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Api, Client, ResourceExt as _};
use tokio::sync::oneshot;

use crate::support::{DataDir, PATIENCE, Server, ports};
use crate::{client, config_map, value};

const KILLS: usize = 2;
const LAST: &str = "restart-last";
/// How long clients write before the server is killed, and again after it is ready.
const TRAFFIC: Duration = Duration::from_millis(700);
/// How many writes must be acknowledged for each kill, however busy the machine is.
const ACKNOWLEDGED_MIN: usize = 6;
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A change: its kind, the object's name, and its revision or, for a deletion, its uid.
type Change = (&'static str, String, String);

/// The record of a writer.
#[derive(Default)]
struct Written {
    acknowledged: BTreeSet<Change>,
    /// Names of objects with a write that got no answer.
    unknown: BTreeSet<String>,
}

/// The changes that a watcher received, and how often it listed or got an error.
#[derive(Default)]
struct Received {
    changes: Vec<Change>,
    lists: usize,
    errors: usize,
}

fn applied(object: &ConfigMap) -> Change {
    ("applied", object.name_any(), object.resource_version().unwrap_or_default())
}

fn deleted(object: &ConfigMap) -> Change {
    ("deleted", object.name_any(), object.uid().unwrap_or_default())
}

/// How far a watcher is: how many changes it has received, and how many errors.
#[derive(Default)]
struct Progress {
    changes: AtomicUsize,
    errors: AtomicUsize,
}

impl Progress {
    /// Waits until the watcher has noticed this many kills, and receives changes again. Otherwise it might miss that
    /// the server is killed once more.
    async fn is_back_after(&self, kills: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.errors.load(Ordering::SeqCst) < kills {
            assert!(Instant::now() < deadline, "the watcher did not notice a kill");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        let before = self.changes.load(Ordering::SeqCst);
        while self.changes.load(Ordering::SeqCst) == before {
            assert!(Instant::now() < deadline, "the watcher receives no changes");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

/// Creates and updates objects, and deletes a third of them, until `stop` is set and enough has been written.
async fn write(api: Api<ConfigMap>, stop: Arc<AtomicBool>, mut number: usize) -> (Written, usize) {
    let mut written = Written::default();
    let deadline = Instant::now() + PATIENCE;
    let lacks = |written: &Written| written.acknowledged.len() < ACKNOWLEDGED_MIN && Instant::now() < deadline;
    while !stop.load(Ordering::SeqCst) || lacks(&written) {
        number += 1;
        let name = format!("restart-{number:05}");
        if write_one(&api, &name, number.is_multiple_of(3), &mut written).await.is_err() {
            written.unknown.insert(name);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    (written, number)
}

async fn write_one(api: &Api<ConfigMap>, name: &str, deletes: bool, written: &mut Written) -> Result<(), kube::Error> {
    let mut object = api.create(&PostParams::default(), &config_map(name, "1")).await?;
    written.acknowledged.insert(applied(&object));
    object.data = config_map(name, "2").data;
    let object = api.replace(name, &PostParams::default(), &object).await?;
    assert_eq!(value(&object), "2");
    written.acknowledged.insert(applied(&object));
    if deletes {
        api.delete(name, &DeleteParams::default()).await?;
        written.acknowledged.insert(deleted(&object));
    }
    Ok(())
}

/// Follows the watch until the object [`LAST`] arrives. Signals `begun` after the initial objects.
async fn follow(
    client: Client,
    config: watcher::Config,
    begun: oneshot::Sender<()>,
    progress: Arc<Progress>,
) -> (Received, reflector::Store<ConfigMap>) {
    let mut begun = Some(begun);
    let (store, writer) = reflector::store();
    let watch = watcher(Api::<ConfigMap>::namespaced(client, "default"), config).default_backoff();
    let mut events = std::pin::pin!(reflector::reflector(writer, watch));
    let mut received = Received::default();
    while let Some(event) = events.next().await {
        let change = match event {
            Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => applied(&object),
            Ok(watcher::Event::Delete(object)) => deleted(&object),
            Ok(watcher::Event::Init) => {
                received.lists += 1;
                continue;
            }
            Ok(watcher::Event::InitDone) => {
                begun.take().map(|begun| begun.send(()));
                continue;
            }
            Err(_) => {
                received.errors += 1;
                progress.errors.fetch_add(1, Ordering::SeqCst);
                continue;
            }
        };
        let is_last = change.1 == LAST;
        // Controllers also write to this namespace.
        if change.1.starts_with("restart-") {
            received.changes.push(change);
            progress.changes.fetch_add(1, Ordering::SeqCst);
        }
        if is_last {
            break;
        }
    }
    (received, store)
}

pub async fn kill_and_restart(directory: &Arc<DataDir>, server: Server, address: SocketAddr) -> Server {
    let directory = Arc::clone(directory);
    let restart = move || {
        server.kill();
        directory.start_on(address)
    };
    tokio::task::spawn_blocking(restart).await.expect("a server")
}

fn judge(received: &Received, written: &Written) {
    let mut counts: BTreeMap<&Change, usize> = BTreeMap::new();
    received.changes.iter().for_each(|change| *counts.entry(change).or_default() += 1);
    let repeated: Vec<_> = counts.iter().filter(|(_, count)| **count > 1).collect();
    assert!(repeated.is_empty(), "received more than once: {repeated:?}");
    let missed: Vec<_> = written.acknowledged.iter().filter(|change| !counts.contains_key(change)).collect();
    assert!(missed.is_empty(), "never received: {missed:?}");
    let is_known = |change: &&Change| written.acknowledged.contains(*change) || written.unknown.contains(&change.1);
    let unasked: Vec<_> = received.changes.iter().filter(|change| !is_known(change)).collect();
    assert!(unasked.is_empty(), "no client made these changes: {unasked:?}");
    assert_eq!(received.lists, 1, "the watch did not resume where it was");
    assert!(received.errors >= KILLS, "the watcher did not notice the kills");
}

async fn check(config: watcher::Config) {
    let directory = Arc::new(DataDir::new());
    let mut server = directory.start_on(ports::free(1)[0]);
    let (address, client) = (server.credentials().address, client(&server).await);
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let (begun, begins) = oneshot::channel();
    let progress = Arc::<Progress>::default();
    let watching = tokio::spawn(follow(client, config, begun, Arc::clone(&progress)));
    // The initial objects show only the newest version of each object, so writers begin after them.
    begins.await.expect("the watch begins");
    let (mut written, mut number) = (Written::default(), 0);
    for kills in 0..KILLS {
        let stop = Arc::new(AtomicBool::new(false));
        let writing = tokio::spawn(write(api.clone(), Arc::clone(&stop), number));
        tokio::time::sleep(TRAFFIC).await;
        progress.is_back_after(kills).await;
        server = kill_and_restart(&directory, server, address).await;
        tokio::time::sleep(TRAFFIC).await;
        stop.store(true, Ordering::SeqCst);
        let round = writing.await.expect("a writer");
        written.acknowledged.extend(round.0.acknowledged);
        written.unknown.extend(round.0.unknown);
        number = round.1;
    }
    let last = api.create(&PostParams::default(), &config_map(LAST, "1")).await.expect("created");
    written.acknowledged.insert(applied(&last));
    let watched = tokio::time::timeout(PATIENCE, watching).await.expect("the last object in time");
    let (received, store) = watched.expect("a watcher");
    assert!(written.acknowledged.len() > 10, "too few writes were acknowledged");
    judge(&received, &written);
    let mut reflected: Vec<_> = store.state().iter().map(|object| applied(object)).collect();
    let mut listed: Vec<_> = api.list(&ListParams::default()).await.expect("a list").iter().map(applied).collect();
    reflected.sort();
    listed.sort();
    assert_eq!(reflected, listed);
}

#[tokio::test]
async fn a_watch_after_a_list_resumes_after_kills() {
    check(watcher::Config::default()).await;
}

#[tokio::test]
async fn a_watch_with_initial_events_resumes_after_kills() {
    check(watcher::Config::default().streaming_lists()).await;
}
