//! Leaves a log with many objects and their history behind, to measure how long a start with it takes.

use std::time::Instant;

use flotilla_cluster::{Key, Options, Store, TableId, TableOptions};

use crate::put;

/// The number of concurrent writers.
const WRITERS: usize = 64;

/// Returns options like those of the server: pods are indexed by their node.
pub fn options(directory: &str) -> Options {
    let indexed = TableOptions { shards: None, indexes: vec!["spec.nodeName".into()] };
    Options { tables: [(TableId::new("pods"), indexed)].into(), ..Options::new(directory) }
}

fn argument(at: usize, otherwise: usize) -> usize {
    std::env::args().nth(at).and_then(|number| number.parse().ok()).unwrap_or(otherwise)
}

/// Creates objects, changes each several times, and ends the process as if it were killed. The arguments after `load`
/// are the number of objects, their size in bytes, the number of changes of each, and the megabytes of log after which
/// a snapshot is written. Without the last argument, no snapshot is written.
pub async fn leave(directory: &str) {
    let (objects, bytes, updates) = (argument(3, 100_000), argument(4, 11_000), argument(5, 0));
    let options = Options { snapshot_log_bytes: (argument(6, 1 << 20) as u64) << 20, ..options(directory) };
    let (store, table, began) = (Store::open(options).await.unwrap(), TableId::new("pods"), Instant::now());
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (store, table) = (store.clone(), table.clone());
            tokio::spawn(async move {
                for number in (writer..objects).step_by(WRITERS) {
                    let key = Key::namespaced(&format!("ns-{}", number % 100), &format!("pod-{number}"));
                    let mut last = None;
                    for _ in 0..=updates {
                        last = Some(put(&store, &table, &key, last, bytes).await);
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    println!("{objects} objects of {bytes} B, each changed {updates} times: {:?}", began.elapsed());
    println!("{:?}", store.status().wal);
    std::process::exit(0);
}
