//! The text of a list in chunks, each made when its connection takes it.

use std::future::{poll_fn, ready};
use std::sync::Arc;

use bytes::Bytes;
use flotilla_cluster::Object;
use futures_util::{FutureExt as _, Stream, stream};

use super::items::{Common, ItemWriter};
use crate::gateway::large_requests::LargeRequestThreads;
use crate::limits;
use crate::registry::{OneByOne, Page};
use crate::status::ApiResult;
use crate::turn::Turn;
use crate::unsent::{Pieces, UnsentBytes};

/// A list on its way to its client.
pub(super) struct Chunks {
    writer: Box<dyn ItemWriter>,
    objects: OneByOne,
    /// Threads that write large items.
    large_requests: Arc<LargeRequestThreads>,
    ready: Pieces,
    unsent: UnsentBytes,
    turn: Turn,
    /// Whether the text ends with `ready`.
    done: bool,
}

impl Chunks {
    /// Returns the list of a page. Only the text before the first item is made yet.
    pub(super) fn of(
        mut writer: Box<dyn ItemWriter>,
        page: Page,
        large_requests: Arc<LargeRequestThreads>,
    ) -> ApiResult<Self> {
        let mut ready = Pieces::with_room(limits::LIST_FIRST_CHUNK_BYTES);
        writer.begin(&page, ready.text())?;
        Ok(Self {
            writer,
            objects: OneByOne::of(page),
            large_requests,
            ready,
            unsent: UnsentBytes::default(),
            turn: Turn::begin(),
            done: false,
        })
    }

    /// Returns whether no further chunk follows.
    pub(super) fn is_last(&self) -> bool {
        self.done
    }

    /// Returns the number of bytes that are ready.
    pub(super) fn len(&self) -> usize {
        self.ready.len()
    }

    /// Returns whether the whole text is ready, in one piece.
    pub(super) fn is_whole(&self) -> bool {
        self.done && self.ready.is_one()
    }

    /// Returns the text that is ready.
    pub(super) fn into_bytes(self) -> Bytes {
        self.ready.whole()
    }

    /// Returns the text as a stream, which ends after an error.
    pub(super) fn stream(self) -> impl Stream<Item = ApiResult<Bytes>> {
        stream::try_unfold(self, |mut chunks| async move {
            if chunks.ready.is_empty() && !chunks.done {
                chunks.ready =
                    Pieces::with_room(UnsentBytes::portion(limits::LIST_CHUNK_BYTES) + limits::SHARED_BYTES_MIN);
                chunks = chunks.fill().await?;
            }
            Ok(chunks.ready.take().map(|piece| (piece, chunks)))
        })
    }

    /// Appends items until a chunk is full or the list ends.
    ///
    /// # Errors
    /// 410 when the client reads so slowly that the snapshot is gone; 500 for an object that cannot be read.
    pub(super) async fn fill(mut self) -> ApiResult<Self> {
        let most = UnsentBytes::portion(limits::LIST_CHUNK_BYTES);
        while self.ready.len() < most {
            let Some(object) = poll_fn(|cx| self.objects.poll_next(cx, &mut self.turn)).await? else {
                self.writer.end(self.ready.text());
                self.done = true;
                break;
            };
            if object.bytes().len() >= limits::LARGE_REQUEST_BYTES && !self.writer.copies(&object) {
                self = self.append_aside(object).await?;
            } else {
                self.append(&object)?;
            }
        }
        self.unsent.hold(self.ready.own());
        Ok(self)
    }

    /// Appends an item on another thread, so that this one serves others meanwhile.
    async fn append_aside(mut self, object: Arc<Object>) -> ApiResult<Self> {
        let large_requests = Arc::clone(&self.large_requests);
        let appended = large_requests.run(move || ready(self.append(&object).map(|()| self)).boxed_local()).await??;
        Ok(Self { turn: Turn::begin(), ..appended })
    }

    /// Appends an item.
    fn append(&mut self, object: &Arc<Object>) -> ApiResult<()> {
        self.writer.item(object, &mut self.ready).map_err(|error| {
            let Common { registry, served, .. } = self.writer.common();
            registry.tables.list_failed(served, object, error, |others| self.objects.read(others))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::thread::{self, ThreadId};

    use flotilla_cluster::{Options, Store};
    use flotilla_proto::value;
    use futures_util::TryStreamExt as _;
    use parking_lot::Mutex;

    use super::*;
    use crate::access::User;
    use crate::config::PortRange;
    use crate::registry::{Incoming, Listing, Registry};
    use crate::request::{Caller, WriteOptions};
    use crate::scratch::Scratch;
    use crate::tables::{Tables, Target};

    /// Writes the names of objects, and notes which thread did that.
    struct Names {
        copies: bool,
        threads: Arc<Mutex<Vec<ThreadId>>>,
    }

    impl ItemWriter for Names {
        fn begin(&mut self, _page: &Page, out: &mut Vec<u8>) -> ApiResult<()> {
            out.push(b'<');
            Ok(())
        }

        fn item(&mut self, object: &Object, out: &mut Pieces) -> ApiResult<()> {
            self.threads.lock().push(thread::current().id());
            out.text().extend_from_slice(object.key().name().as_bytes());
            Ok(())
        }

        fn copies(&self, _object: &Object) -> bool {
            self.copies
        }

        fn end(&self, out: &mut Vec<u8>) {
            out.push(b'>');
        }

        fn common(&self) -> &Common {
            unreachable!("every object can be read")
        }
    }

    async fn write(registry: &Registry, name: &str, annotation: String) {
        let served = registry.tables.resources.find("", "v1", "namespaces").unwrap();
        let target = Target::resource(&served, "");
        let metadata = value!({"name": name, "annotations": {"text": annotation}});
        let value = value!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        let incoming = Incoming { value, ..Incoming::default() };
        let mut caller = Caller::new(Arc::new(User::default()), "test");
        registry.create(target, incoming, &WriteOptions::default(), &mut caller).await.unwrap();
    }

    #[actix_web::test]
    async fn only_large_items_that_are_not_copied_are_written_by_another_thread() {
        let dir = Scratch::new();
        let store = Store::open(Options::new(dir.join("store"))).await.unwrap();
        let registry = Registry::new(Tables::new(store.clone()), PortRange::NODE_PORTS);
        write(&registry, "a", String::new()).await;
        write(&registry, "b", "x".repeat(limits::LARGE_REQUEST_BYTES)).await;
        write(&registry, "c", String::new()).await;
        let served = registry.tables.resources.find("", "v1", "namespaces").unwrap();
        let large_requests = Arc::new(LargeRequestThreads::start(1));
        for copies in [false, true] {
            let page = registry.list(&served, "", &Listing::default()).await.unwrap();
            let threads = Arc::default();
            let writer = Names { copies, threads: Arc::clone(&threads) };
            let chunks = Chunks::of(Box::new(writer), page, Arc::clone(&large_requests)).unwrap().fill().await.unwrap();
            let text: Vec<Bytes> = chunks.stream().try_collect().await.unwrap();
            assert_eq!(text.concat(), b"<abc>");
            let here = thread::current().id();
            let are_here: Vec<bool> = threads.lock().iter().map(|thread| *thread == here).collect();
            assert_eq!(are_here, [true, copies, true]);
        }
        store.shutdown().await;
    }
}
