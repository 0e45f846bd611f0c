use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use flotilla_cluster::{Options, Store};
use flotilla_proto::value::Value;
use flotilla_proto::{conform, value};
use futures_util::Stream as _;

use super::*;
use crate::access::User;
use crate::config::PortRange;
use crate::custom::Definition;
use crate::drain::{Drain, DrainBegin};
use crate::registry::{Incoming, Registry};
use crate::representation::Show;
use crate::request::{Caller, Form, Media, Representation, WriteOptions};
use crate::scratch::Scratch;
use crate::selector::LabelSelector;
use crate::served::Served;
use crate::tables::{Tables, Target};
use crate::transport::ConnectionId;

/// Counts wake-ups.
#[derive(Default)]
struct Count(AtomicUsize);

impl Count {
    fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns the definition of a custom resource in the group `g.example`.
fn things() -> Definition {
    let definition = value!({
        "spec": {"group": "g.example", "scope": "Cluster", "versions": [{"name": "v1", "served": true, "storage": true}]},
        "status": {
            "acceptedNames": {"plural": "things", "kind": "Thing"},
            "conditions": [{"type": "Established", "status": "True"}]
        }
    });
    Definition::of(&definition).unwrap()
}

/// A watch of objects with the label `wanted`, namespaces by default, and its client.
struct Watch {
    registry: Arc<Registry>,
    served: Arc<Served>,
    begin: DrainBegin,
    stream: Stream,
    woken: Arc<Count>,
    waker: Waker,
    _dir: Scratch,
}

impl Watch {
    async fn start() -> Self {
        Self::start_of("", "namespaces").await
    }

    async fn start_of(group: &str, resource: &str) -> Self {
        let dir = Scratch::new();
        let store = Store::open(Options::new(dir.join("store"))).await.unwrap();
        let registry = Arc::new(Registry::new(Tables::new(store), PortRange::NODE_PORTS));
        registry.tables.resources.define([Arc::new(things())].iter());
        let served = registry.tables.resources.find(group, "v1", resource).unwrap();
        let representation = Representation { media: Media::Json, form: Form::Object, pretty: false };
        let show = Show { representation, include: None, gzip: false };
        let encoder = Encoder::new(Arc::clone(&registry), Arc::clone(&served), show).unwrap();
        let selection = Selection { labels: LabelSelector::parse("wanted").unwrap(), ..Selection::default() };
        let listing = Listing { selection, ..Listing::default() };
        let table = registry.tables.table(&served);
        let (begin, drain) = Drain::new();
        let (after, waker) = (Start::After(table.revision()), BatchedWaker::of(ConnectionId::next()));
        let end = End::of(drain, &served);
        let stream =
            Stream::new(table, Interest::default(), after, encoder, (&listing, Duration::from_secs(3_600)), end, waker);
        let woken = Arc::<Count>::default();
        let waker = Arc::clone(&woken).into();
        Self { registry, served, begin, stream, woken, waker, _dir: dir }
    }

    fn poll(&mut self) -> Poll<Option<ApiResult<Bytes>>> {
        Pin::new(&mut self.stream).poll_next(&mut Context::from_waker(&self.waker))
    }

    /// Creates a namespace, and waits until the task of the watch was woken for it.
    async fn create(&self, mut value: Value) {
        let target = Target::resource(&self.served, "");
        conform::conform(self.served.of(), &mut value).unwrap();
        let mut caller = Caller::new(Arc::new(User::default()), "test");
        let incoming = Incoming { value, ..Incoming::default() };
        self.registry.create(target, incoming, &WriteOptions::default(), &mut caller).await.unwrap();
        while self.woken.take() == 0 {
            actix_web::rt::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn assert_ends(&mut self) {
        assert!(self.woken.take() > 0, "the end wakes the watch");
        assert!(matches!(self.poll(), Poll::Ready(None)));
    }
}

#[actix_web::test]
async fn a_watch_that_was_told_of_the_end_beside_a_change_still_ends() {
    let mut watch = Watch::start().await;
    assert!(watch.poll().is_pending());
    watch.create(value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})).await;
    watch.begin.announce();
    assert!(watch.poll().is_pending(), "the watch does not select the change, and the end has not begun");
    watch.woken.take();
    watch.begin.begin();
    watch.assert_ends();
    watch.registry.tables.store.clone().shutdown().await;
}

#[actix_web::test]
async fn a_watch_whose_client_is_slow_sees_the_end_behind_its_events() {
    let mut watch = Watch::start().await;
    assert!(watch.poll().is_pending());
    let metadata = value!({"name": "own", "labels": {"wanted": ""}});
    watch.create(value!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})).await;
    assert!(matches!(watch.poll(), Poll::Ready(Some(Ok(_)))));
    // The task is woken while it waits for the client to take the event.
    watch.begin.begin();
    watch.assert_ends();
    watch.registry.tables.store.clone().shutdown().await;
}

#[actix_web::test]
async fn a_watch_of_what_is_defined_otherwise_ends_after_a_while() {
    let mut watch = Watch::start_of("g.example", "things").await;
    assert!(watch.poll().is_pending());
    let grace = watch.served.custom.as_ref().unwrap().definition().grace.clone();
    tokio::time::pause(); // the grace period must not pass before the watch is polled
    grace.begin();
    assert!(watch.poll().is_pending());
    tokio::time::resume();
    watch.woken.take();
    grace.over().await;
    while watch.woken.0.load(Ordering::Relaxed) == 0 {
        actix_web::rt::time::sleep(Duration::from_millis(1)).await;
    }
    watch.assert_ends();
    watch.registry.tables.store.clone().shutdown().await;
}

#[test]
fn bookmarks_come_every_minute_and_shortly_before_the_end() {
    let now = Instant::now();
    let next = |seconds| bookmark_after(now, now + Duration::from_secs(seconds)) - now;
    let (minute, second) = (Duration::from_secs(60), Duration::from_secs(1));
    assert_eq!(([3_600, 63, 62].map(next)), [minute; 3]);
    assert_eq!(([61, 10, 3].map(next)), [second * 59, second * 8, second]);
    // The last bookmark was sent, or the watch is too short: no further bookmark.
    assert_eq!(([2, 1].map(next)), [minute; 2]);
}
