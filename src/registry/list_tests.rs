use std::sync::Arc;
use std::time::{Duration, Instant};

use flotilla_cluster::{Options, Store};
use flotilla_proto::{conform, value};

use super::*;
use crate::access::User;
use crate::config::PortRange;
use crate::limits;
use crate::registry::Incoming;
use crate::request::{Caller, WriteOptions};
use crate::scratch::Scratch;
use crate::selector::LabelSelector;
use crate::tables::{Tables, Target};

/// Returns a listing with a token of a replica that is ahead by this much.
fn token(served: &Served, ahead: Duration) -> Listing {
    let now = crate::wall_clock::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let revision = Revision::from_unix_ms((now + ahead).as_millis() as u64);
    let (table, after) = (served.table.as_str().to_owned(), "a/b".to_owned());
    let token = Token { table, epoch: 0, revision: Some(revision), after, seen: 1 };
    Listing { token: token.write(), limit: 1, ..Listing::default() }
}

/// Writes a namespace, which raises the replica's revision.
async fn write(registry: &Registry, name: &str) {
    let served = registry.tables.resources.find("", "v1", "namespaces").unwrap();
    let target = Target::resource(&served, "");
    let mut value = value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    conform::conform(served.of(), &mut value).unwrap();
    let mut caller = Caller::new(Arc::new(User::default()), "test");
    let incoming = Incoming { value, ..Incoming::default() };
    registry.create(target, incoming, &WriteOptions::default(), &mut caller).await.unwrap();
}

/// Returns whether a page waits until its replica has reached the revision of its token. A machine that stops for a
/// while may write later than the page waits for that.
async fn reaches_soon(registry: &Registry, served: &Served, attempt: usize) -> bool {
    let (began, soon) = (Instant::now(), token(served, Duration::from_millis(300)));
    let later = async {
        actix_web::rt::time::sleep(Duration::from_millis(400)).await;
        write(registry, &format!("any-{attempt}")).await;
    };
    let (page, ()) = futures_util::future::join(registry.list(served, "", &soon), later).await;
    let refused = page.err().map(|error| error.code);
    let is_late = refused == Some(504) && began.elapsed() >= limits::REVISION_WAIT;
    assert!(refused.is_none() || is_late, "{refused:?}");
    !is_late
}

#[actix_web::test]
async fn a_page_waits_for_the_revision_of_its_token() {
    let dir = Scratch::new();
    let store = Store::open(Options::new(dir.join("store"))).await.unwrap();
    let registry = Registry::new(Tables::new(store.clone()), PortRange::NODE_PORTS);
    let served = registry.tables.resources.find("", "v1", "pods").unwrap();
    let at_once = registry.page(&served, "", &token(&served, Duration::from_secs(3_600)));
    assert_eq!(at_once.err().map(|error| error.code), Some(504), "not 410: it is not past");
    let far = token(&served, Duration::from_secs(3_600));
    let mut attempts = 1..=20;
    while !reaches_soon(&registry, &served, attempts.next().expect("a page that does not wait in vain")).await {}
    assert_eq!(registry.list(&served, "", &far).await.err().map(|error| error.code), Some(504));
    let other = registry.tables.resources.find("", "v1", "secrets").unwrap();
    assert_eq!(registry.list(&other, "", &far).await.err().map(|error| error.code), Some(400));
    store.shutdown().await;
}

#[actix_web::test]
async fn pages_after_one_without_a_consistent_view_are_of_its_revision() {
    let dir = Scratch::new();
    let store = Store::open(Options::new(dir.join("store"))).await.unwrap();
    let registry = Registry::new(Tables::new(store.clone()), PortRange::NODE_PORTS);
    for name in ["a", "b", "c", "d"] {
        write(&registry, name).await;
    }
    let served = registry.tables.resources.find("", "v1", "namespaces").unwrap();
    let listing = |token: String| Listing { token, limit: 1, ..Listing::default() };
    let table = served.table.as_str().to_owned();
    let lost = Token { table, epoch: 0, revision: None, after: "a".into(), seen: 0 };
    let first = registry.list(&served, "", &listing(lost.write())).await.unwrap();
    assert_eq!(first.remaining, Some(2), "c and d");
    write(&registry, "bb").await;
    let second = registry.list(&served, "", &listing(first.next.clone().unwrap())).await.unwrap();
    assert_eq!((second.revision, second.remaining), (first.revision, Some(1)));
    let mut rows = Vec::new();
    let mut second = second;
    second.read(&mut rows).unwrap();
    assert_eq!(rows[0].key().name(), "c", "bb came later");
    store.shutdown().await;
}

#[actix_web::test]
async fn lists_do_not_parse_objects_written_by_this_process() {
    let dir = Scratch::new();
    let open = async || Store::open(Options::new(dir.join("store"))).await.unwrap();
    let store = open().await;
    let registry = Registry::new(Tables::new(store.clone()), PortRange::NODE_PORTS);
    write(&registry, "one").await;
    let served = registry.tables.resources.find("", "v1", "namespaces").unwrap();
    let current = |registry: &Registry| registry.tables.current(&served, "", "one").unwrap();
    assert_eq!(current(&registry).is_decodable(), Some(true), "it is not checked again");
    store.shutdown().await;
    let store = open().await;
    let registry = Registry::new(Tables::new(store.clone()), PortRange::NODE_PORTS);
    assert_eq!(current(&registry).is_decodable(), None, "the writer of the log is not known");
    registry.tables.examine_stored().await;
    assert_eq!(current(&registry).is_decodable(), Some(true));
    store.shutdown().await;
}

#[actix_web::test]
async fn a_selector_with_many_requirements_lets_other_tasks_run() {
    let dir = Scratch::new();
    let store = Store::open(Options::new(dir.join("store"))).await.unwrap();
    let registry = Registry::new(Tables::new(store.clone()), PortRange::NODE_PORTS);
    for number in 0..200 {
        write(&registry, &format!("n-{number}")).await;
    }
    let served = registry.tables.resources.find("", "v1", "namespaces").unwrap();
    let mut selection = Selection::default();
    let text = (0..90_000).map(|number| format!("!k{number}")).collect::<Vec<_>>().join(",");
    selection.labels = LabelSelector::parse(&text).unwrap();
    for limit in [0, 500] {
        let listing = Listing { selection: selection.clone(), limit, ..Listing::default() };
        let others = std::cell::Cell::new(0);
        let listed = async {
            let mut page = registry.list(&served, "", &listing).await.unwrap();
            assert_eq!(page.read_all().await.unwrap().len(), 200);
        };
        let other = async {
            loop {
                others.set(others.get() + 1);
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            () = listed => {}
            () = other => {}
        }
        // Comparing 18 million requirements takes longer than a few turns on any machine.
        assert!(others.get() > 3, "another task ran {} times beside a list with limit {limit}", others.get());
    }
    store.shutdown().await;
}
