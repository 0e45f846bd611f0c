//! The transport: calls and answers over connections of a network.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::connected_members::ConnectedMembers;
use super::frame::FrameKind;
use super::link::{Keeper, Link, LinkKey};
use super::served;
use super::session::QueuedCall;
use super::wire::Network;
use super::{Callee, Contacts, Hello, Lane, Liveness, PeerError, Peers, Service};
use crate::PeerTls;
use crate::clock::HybridClock;
use crate::limits::{PEER_ADDRESSES_MAX, PEER_CALL_TIMEOUT_MAX, PEER_FRAME_BYTES_MAX, PEER_FRAME_HEADER_BYTES};
use crate::tasks;

/// The options of a transport.
pub(crate) struct TransportOptions {
    /// The network on which it listens and calls.
    pub(crate) network: Arc<dyn Network>,
    /// The address on which it listens. Port 0 takes any free port.
    pub(crate) listen: SocketAddr,
    /// The certificates of this replica, and those that it trusts.
    pub(crate) tls: PeerTls,
    /// The hello of this replica. Others learn of a change before any later call.
    pub(crate) hello: watch::Receiver<Hello>,
    /// The clock that is sent with every frame, and that follows the clocks of others.
    pub(crate) clock: HybridClock,
}

/// Calls other replicas, and answers them, until it is dropped or shut down ([`Transport::shutdown`]).
pub(crate) struct Transport {
    #[cfg(test)]
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// The state that the tasks of a transport share.
pub(super) struct Shared {
    pub(super) network: Arc<dyn Network>,
    pub(super) tls: PeerTls,
    pub(super) hello: watch::Receiver<Hello>,
    pub(super) clock: HybridClock,
    pub(super) service: Arc<dyn Service>,
    pub(super) connected_members: Arc<ConnectedMembers>,
    /// Ends the pauses before further attempts to connect.
    pub(super) peer_connected: Notify,
    links: Mutex<BTreeMap<LinkKey, Arc<Link>>>,
    runtime: Handle,
    stopped: AtomicBool,
    /// Notifies all tasks, in the order in which they were started.
    stopping: Notify,
}

impl Transport {
    /// Listens and answers, on the runtime of the caller.
    ///
    /// # Errors
    /// Fails when the address cannot be listened on.
    pub(crate) fn start(options: TransportOptions, service: Arc<dyn Service>) -> Result<Arc<Transport>, io::Error> {
        let listener = options.network.listen(options.listen, &options.tls)?;
        let address = listener.address();
        tracing::debug!(%address, "listening for other replicas");
        let shared = Arc::new(Shared {
            network: options.network,
            tls: options.tls,
            hello: options.hello,
            connected_members: Arc::new(ConnectedMembers::new(options.clock.clone())),
            clock: options.clock,
            service,
            peer_connected: Notify::new(),
            links: Mutex::default(),
            runtime: Handle::try_current().map_err(io::Error::other)?,
            stopped: AtomicBool::new(false),
            stopping: Notify::new(),
        });
        shared.spawn(served::accept(shared.clone(), listener));
        Ok(Arc::new(Transport {
            #[cfg(test)]
            address,
            shared,
        }))
    }

    /// Returns the address on which it listens.
    #[cfg(test)]
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes the listener and all connections, and makes no more.
    pub(crate) fn shutdown(&self) {
        self.shared.stop();
        let links: Vec<_> = self.shared.links.lock().values().cloned().collect();
        links.iter().for_each(|link| link.rest(&PeerError::Closed));
    }

    fn begin(
        &self,
        to: &Callee,
        lane: Lane,
        kind: FrameKind,
        method: u32,
        payload: Bytes,
    ) -> Result<QueuedCall, PeerError> {
        if payload.len() > PEER_FRAME_BYTES_MAX - PEER_FRAME_HEADER_BYTES {
            return Err(PeerError::TooLarge { bytes: payload.len() });
        }
        if self.shared.is_stopped() {
            return Err(PeerError::Closed);
        }
        self.shared.link(&to.address, lane)?.session()?.begin(to.member, kind, method, payload)
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl Peers for Transport {
    fn call(
        &self,
        to: &Callee,
        lane: Lane,
        method: u32,
        payload: Bytes,
        timeout: Duration,
    ) -> BoxFuture<'static, Result<Bytes, PeerError>> {
        let until = Instant::now() + timeout.min(PEER_CALL_TIMEOUT_MAX);
        match self.begin(to, lane, FrameKind::Request, method, payload) {
            Ok(call) => call.answer(until).boxed(),
            Err(error) => std::future::ready(Err(error)).boxed(),
        }
    }

    fn hello_of(&self, address: &str, timeout: Duration) -> BoxFuture<'static, Result<Hello, PeerError>> {
        let until = Instant::now() + timeout.min(PEER_CALL_TIMEOUT_MAX);
        let callee = Callee { address: address.to_owned(), member: None };
        let begun = self.begin(&callee, Lane::Control, FrameKind::Ping, 0, Bytes::new());
        async move {
            let call = begun?;
            let session = call.session.clone();
            call.answer(until).await?;
            session.peer().ok_or(PeerError::Closed)
        }
        .boxed()
    }

    fn resolve(&self, address: &str) -> BoxFuture<'static, io::Result<Vec<String>>> {
        self.shared.network.resolve(address)
    }

    fn is_drained(&self, member: u64) -> bool {
        self.shared.connected_members.is_drained(member)
    }

    fn is_full(&self, member: u64) -> bool {
        self.shared.connected_members.is_full(member)
    }

    fn reached_voters(&self, member: u64) -> u32 {
        self.shared.connected_members.reached_voters(member)
    }

    fn servers(&self) -> BTreeMap<u64, String> {
        self.shared.connected_members.servers()
    }

    fn contacts(&self) -> BTreeMap<u64, Contacts> {
        self.shared.connected_members.contacts()
    }

    fn liveness(&self) -> watch::Receiver<Liveness> {
        self.shared.connected_members.liveness()
    }
}

impl Shared {
    /// Runs a task until it is done or the transport is stopped.
    pub(super) fn spawn(self: &Arc<Self>, task: impl Future<Output = ()> + Send + 'static) {
        let shared = self.clone();
        let work = async move {
            let mut stopping = std::pin::pin!(shared.stopping.notified());
            stopping.as_mut().enable(); // before looking, so that no stop is missed
            if shared.is_stopped() {
                return;
            }
            tokio::select! {
                biased;
                () = stopping => {}
                () = task => {}
            }
        };
        tasks::detached_on(&self.runtime, "peers", work);
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.stopping.notify_waiters();
    }

    /// Returns whether the transport was stopped.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    fn link(self: &Arc<Self>, address: &str, lane: Lane) -> Result<Arc<Link>, PeerError> {
        let mut links = self.links.lock();
        let key = (address.to_owned(), lane);
        if let Some(link) = links.get(&key) {
            return Ok(link.clone());
        }
        if links.len() >= 3 * PEER_ADDRESSES_MAX {
            return Err(PeerError::QueueFull);
        }
        let link = Link::new();
        links.insert(key.clone(), link.clone());
        let keeper = Keeper::new(self.clone(), link.clone(), key);
        drop(links); // dropping the task, and the keeper in it, takes this lock
        self.spawn(keeper.keep());
        Ok(link)
    }

    /// Removes a link that has no keeper any more.
    pub(super) fn forget(&self, key: &LinkKey, link: &Arc<Link>) {
        let mut links = self.links.lock();
        if links.get(key).is_some_and(|known| Arc::ptr_eq(known, link)) {
            links.remove(key);
        }
    }

    /// Returns the links to an address that carry bulk data and snapshots.
    pub(super) fn data_links(&self, address: &str) -> impl Iterator<Item = Arc<Link>> {
        [Lane::Bulk, Lane::Snapshot].into_iter().filter_map(|lane| self.known_link(address, lane))
    }

    /// Returns the link to an address on a lane; `None` when it was not used.
    pub(super) fn known_link(&self, address: &str, lane: Lane) -> Option<Arc<Link>> {
        self.links.lock().get(&(address.to_owned(), lane)).cloned()
    }
}
