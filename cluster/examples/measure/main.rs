//! Measures the store: CPU per write, latency, reads, start, memory. Run with `--release`, pinned to one core, with a
//! directory as the argument. A second argument selects a part. `reopen` measures only a start with the data that the
//! last run left in the directory, with large pages of memory. `reopen-in-small-pages` does the same with small pages.
//! `load` leaves a large log for these two, as if the process were killed. `shards` compares a table of several shards
//! with one of a single shard.
#![allow(clippy::disallowed_methods, reason = "tests start tasks of their own, and may block")]

mod load;
mod shards;

/// The allocator of the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use std::sync::Arc;
use std::time::{Duration, Instant};

use flotilla_cluster::{
    Draft, Expectation, Key, Layout, Mutation, Outcome, Revision, Scope, Selection, Store, TableId, Terms, Write,
};

fn draft(bytes: usize) -> Draft {
    let head = format!("{{\"metadata\":{{\"resourceVersion\":\"{}\"}},\"pad\":\"", "0".repeat(18));
    let mut text = Vec::with_capacity(bytes);
    text.extend_from_slice(head.as_bytes());
    let revision_at = 32;
    text.resize(bytes - 2, b'x');
    text.extend_from_slice(b"\"}");
    let layout = Layout { revision_at, head: 1, metadata: 12..60 };
    let terms = Terms::new(vec![("app".into(), "web".into())], vec![("spec.nodeName".into(), "node-1".into())]);
    Draft { bytes: text, layout, terms, ..Draft::default() }
}

async fn put(store: &Store, table: &TableId, key: &Key, last: Option<Revision>, bytes: usize) -> Revision {
    let expectation = last.map_or(Expectation::Absent, Expectation::Revision);
    let mutation = Mutation::Put(draft(bytes));
    match store.write(Write { table: table.clone(), key: key.clone(), expectation, mutation }).await {
        Ok(Outcome::Committed { object, .. }) => object.revision(),
        other => panic!("{other:?}"),
    }
}

/// Returns the processor time of this process so far: user and system.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<u64>().ok()).unwrap_or(0);
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

/// Returns the resident memory, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).unwrap_or(0) * 1024
}

async fn writers(store: &Store, table: &str, writers: usize, each: usize, bytes: usize) {
    let table = TableId::new(table);
    let (began, cpu_before, flushes) = (Instant::now(), cpu(), store.status().wal.flushes);
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let (store, table) = (store.clone(), table.clone());
            tokio::spawn(async move {
                let key = Key::namespaced("kube-node-lease", &format!("node-{writer}"));
                let mut last = store.table(&table).get(key.as_str()).map(|object| object.revision());
                let mut latencies = Vec::with_capacity(each);
                for _ in 0..each {
                    let began = Instant::now();
                    last = Some(put(&store, &table, &key, last, bytes).await);
                    latencies.push(began.elapsed());
                }
                latencies
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.unwrap());
    }
    latencies.sort();
    let (elapsed, cpu, count) = (began.elapsed(), cpu() - cpu_before, latencies.len());
    println!(
        "{writers:>3} writers of {bytes} B: {:>7.0}/s, p50 {:?}, p99 {:?}, cpu {:.1} us each, {:.1} writes a flush",
        count as f64 / elapsed.as_secs_f64(),
        latencies[count / 2],
        latencies[count * 99 / 100],
        cpu.as_secs_f64() * 1e6 / count as f64,
        count as f64 / (store.status().wal.flushes - flushes) as f64,
    );
}

async fn fill(store: &Store, table: &str, objects: usize, bytes: usize) {
    let (before, table) = (resident(), TableId::new(table));
    let tasks: Vec<_> = (0..64)
        .map(|writer| {
            let (store, table) = (store.clone(), table.clone());
            tokio::spawn(async move {
                for number in (writer..objects).step_by(64) {
                    let key = Key::namespaced(&format!("ns-{}", number % 100), &format!("pod-{number}"));
                    put(&store, &table, &key, None, bytes).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let each = resident().saturating_sub(before) / objects;
    println!("{objects} objects of {bytes} B: {each} B of memory each with what the log caches");
}

fn read(store: &Store, table: &str) {
    let table = store.table(&TableId::new(table));
    let keys: Vec<String> = (0..1000).map(|number| format!("ns-{}/pod-{number}", number % 100)).collect();
    let (began, rounds) = (Instant::now(), 200);
    let mut found = 0;
    for _ in 0..rounds {
        found += keys.iter().filter_map(|key| table.get(key)).count();
    }
    println!("get: {:.0} ns ({found} found)", began.elapsed().as_secs_f64() * 1e9 / (rounds * keys.len()) as f64);
    let (began, snapshot) = (Instant::now(), table.snapshot());
    let (mut objects, mut all) = (Vec::new(), 0);
    let mut cursor = snapshot.cursor(Selection::default(), None);
    let mut more = true;
    while more {
        more = cursor.read(500, &mut objects).unwrap();
        all += objects.drain(..).count();
    }
    println!("list of {all} ({} counted): {:?}", snapshot.count(&Scope::All).unwrap(), began.elapsed());
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "/tmp/flotilla-measure".into());
    let mode = std::env::args().nth(2).unwrap_or_default();
    let reopen = mode == "reopen" || mode == "reopen-in-small-pages";
    if mode == "reopen-in-small-pages" {
        rustix::thread::disable_transparent_huge_pages(true).unwrap();
    }
    tracing_subscriber::fmt().with_env_filter("flotilla_cluster=info").with_writer(std::io::stderr).init();
    if !reopen {
        let _ = std::fs::remove_dir_all(&directory);
    }
    if mode == "shards" {
        return shards::compare(&directory).await;
    }
    if mode == "load" {
        return load::leave(&directory).await;
    }
    let options = || load::options(&directory);
    let open = async |what: &str| {
        let (began, cpu_before, before) = (Instant::now(), cpu(), resident());
        let store = Arc::new(Store::open(options()).await.unwrap());
        let (elapsed, cpu, memory) = (began.elapsed(), cpu() - cpu_before, resident().saturating_sub(before));
        println!("open, {what}: {elapsed:?}, cpu {cpu:?}, {} KiB of memory", memory / 1024);
        store
    };
    let close = async |store: Arc<Store>| Store::clone(&store).shutdown().await;
    if reopen {
        let store = open("what is there").await;
        println!("{:?}", store.tables().iter().map(|table| (table.id().clone(), table.usage())).collect::<Vec<_>>());
        return close(store).await;
    }
    let store = open("empty").await;
    for count in [1, 8, 64] {
        writers(&store, "leases", count, 12_800 / count.max(4), 300).await;
    }
    writers(&store, "configmaps", 64, 100, 11_000).await;
    close(store).await;
    let _ = std::fs::remove_dir_all(&directory);
    let store = open("empty").await;
    fill(&store, "pods", 10_000, 11_000).await;
    read(&store, "pods");
    close(store).await;
    let store = open("10,000 of 11 KB in the log").await;
    fill(&store, "leases", 50_000, 300).await;
    let (cpu_before, idle) = (cpu(), Duration::from_secs(5));
    tokio::time::sleep(idle).await;
    println!("idle: {:.2}% of a core", (cpu() - cpu_before).as_secs_f64() / idle.as_secs_f64() * 100.0);
    close(store).await;
}
