//! Compares a table of eight shards with one of a single shard: lists, and watches under a steady load.
#![allow(clippy::disallowed_types, reason = "an example measures, and needs no other lock")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flotilla_cluster::{Interest, Key, Options, Revision, Selection, Store, TableId, TableOptions};

use crate::{cpu, fill, put};

/// The number of objects in the lists.
const OBJECTS: usize = 10_000;
/// The number of times that each list is read.
const LISTS: u32 = 100;
/// How long watches are measured, with a write each millisecond.
const WATCHED: Duration = Duration::from_secs(10);

/// Measures both tables in one store.
pub async fn compare(directory: &str) {
    let spread = |shards| TableOptions { shards: Some(shards), indexes: vec![] };
    let tables = [(TableId::new("one"), spread(1)), (TableId::new("eight"), spread(8))];
    let options = Options { groups: 8, tables: tables.into(), ..Options::new(directory) };
    let store = Store::open(options).await.unwrap();
    for table in ["one", "eight"] {
        fill(&store, table, OBJECTS, 11_000).await;
    }
    for table in ["one", "eight", "one", "eight"] {
        list(&store, table);
    }
    for table in ["one", "eight"] {
        watch(&store, table).await;
    }
    let (cpu_before, idle) = (cpu(), Duration::from_secs(5));
    tokio::time::sleep(idle).await;
    println!("idle, nine groups: {:.2}% of a core", (cpu() - cpu_before).as_secs_f64() / idle.as_secs_f64() * 100.0);
    store.shutdown().await;
}

/// Reads the objects alone, and then with their bytes assembled like the answer to a client.
fn list(store: &Store, table: &str) {
    let snapshot = store.table(&TableId::new(table)).snapshot();
    for with_bytes in [false, true] {
        let (cpu_before, mut all, mut body) = (cpu(), 0, Vec::with_capacity(256 << 10));
        for _ in 0..LISTS {
            let (mut objects, mut cursor, mut more) = (Vec::new(), snapshot.cursor(Selection::default(), None), true);
            while more {
                more = cursor.read(500, &mut objects).unwrap();
                for object in objects.drain(..) {
                    all += 1;
                    if with_bytes {
                        body.extend_from_slice(object.bytes());
                    }
                    if body.len() > 128 << 10 {
                        body.clear();
                    }
                }
            }
        }
        let each = (cpu() - cpu_before).as_secs_f64() * 1e6 / f64::from(LISTS);
        let what = if with_bytes { "with bytes" } else { "objects alone" };
        println!("{table}: list of {}, {what}: cpu {each:.0} us", all / LISTS);
    }
}

/// Measures the time from the commit of a write, as its writer learns of it, to its delivery to a watcher.
async fn watch(store: &Store, name: &str) {
    let table = store.table(&TableId::new(name));
    let mut subscription = table.subscribe(Interest::default(), store.barrier(&table).await.unwrap()).unwrap();
    let committed: Arc<Mutex<HashMap<Revision, Instant>>> = Arc::default();
    let (times, began, cpu_before) = (committed.clone(), Instant::now(), cpu());
    let flushes = store.status().wal.flushes;
    let (writer, written) = (store.clone(), TableId::new(name));
    let writes = tokio::spawn(async move {
        let mut ticks = tokio::time::interval(Duration::from_millis(1));
        let mut number = 0;
        while began.elapsed() < WATCHED {
            ticks.tick().await;
            let (store, table, times) = (writer.clone(), written.clone(), times.clone());
            let key = Key::namespaced("watched", &format!("pod-{number}"));
            number += 1;
            tokio::spawn(async move {
                let revision = put(&store, &table, &key, None, 1_000).await;
                times.lock().unwrap().insert(revision, Instant::now());
            });
        }
        number
    });
    let (mut changes, mut delivered) = (Vec::new(), HashMap::new());
    while began.elapsed() < WATCHED || delivered.len() < committed.lock().unwrap().len() {
        let _ = tokio::time::timeout(Duration::from_millis(100), subscription.changed()).await;
        subscription.read(256, &mut changes).unwrap();
        let now = Instant::now();
        delivered.extend(changes.drain(..).map(|change| (change.revision(), now)));
    }
    let (count, elapsed, cpu) = (writes.await.unwrap(), began.elapsed(), cpu() - cpu_before);
    let committed = committed.lock().unwrap();
    let latency = |(revision, at): (&Revision, &Instant)| at.saturating_duration_since(committed[revision]);
    let mut latencies: Vec<Duration> =
        delivered.iter().filter(|(revision, _)| committed.contains_key(*revision)).map(latency).collect();
    latencies.sort();
    println!(
        "{name}: watched {:.0} writes/s, commit to delivery p50 {:?}, p99 {:?}, max {:?}; cpu {:.0} us a write, {:.0} flushes/s",
        f64::from(count) / elapsed.as_secs_f64(),
        latencies[latencies.len() / 2],
        latencies[latencies.len() * 99 / 100],
        latencies[latencies.len() - 1],
        cpu.as_secs_f64() * 1e6 / f64::from(count),
        (store.status().wal.flushes - flushes) as f64 / elapsed.as_secs_f64(),
    );
}
