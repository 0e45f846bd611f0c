//! The connection to one address on one lane: made when it is first used, and again when it breaks.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};

use super::connected_members::ControlConnection;
use super::connection::Connection;
use super::frame::FrameKind;
use super::session::{Caller, QueuedCall, Session};
use super::timing::Timing;
use super::transport::Shared;
use super::wire::Connected;
use super::{Lane, PeerError, Side};
use crate::chance;
use crate::limits::{
    PEER_DEAD_AFTER, PEER_HANDSHAKE_TIMEOUT, PEER_LOG_INTERVAL, PEER_PROBE_TIMEOUT, PEER_RETRY_AGE, PEER_RETRY_MAX,
    PEER_RETRY_MIN,
};

/// The address and the lane of a link.
pub(super) type LinkKey = (String, Lane);

/// A connection to one address on one lane, which may be down at the moment.
pub(super) struct Link {
    state: Mutex<State>,
}

struct State {
    /// The calls of the connection that is up or being made. `Err` has the reason why there is none at the moment.
    session: Result<Arc<Session>, PeerError>,
    called: Instant,
}

impl Link {
    pub(super) fn new() -> Arc<Link> {
        Arc::new(Link { state: Mutex::new(State { session: Ok(Arc::default()), called: Instant::now() }) })
    }

    /// Returns the session on which calls can be made.
    pub(super) fn session(&self) -> Result<Arc<Session>, PeerError> {
        let mut state = self.state.lock();
        state.called = Instant::now();
        state.session.clone()
    }

    fn is_wanted(&self) -> bool {
        self.state.lock().called.elapsed() < PEER_RETRY_AGE
    }

    /// Fails the calls in progress, and further ones until the next attempt to connect.
    pub(super) fn rest(&self, error: &PeerError) {
        let session = std::mem::replace(&mut self.state.lock().session, Err(error.clone()));
        if let Ok(session) = session {
            session.end(error.clone());
        }
    }

    /// Sends a ping over the connection, which does not count as use of the link. `None` when there is no connection.
    fn probe(&self) -> Option<QueuedCall> {
        let session = self.state.lock().session.clone().ok().filter(|session| session.peer().is_some())?;
        session.begin(None, FrameKind::Ping, 0, Bytes::new()).ok()
    }

    /// Fails the calls in progress on a session, if it is still the present one.
    fn give_up(&self, stuck: &Arc<Session>) {
        let error = PeerError::Unreachable("the link was interrupted".into());
        let mut state = self.state.lock();
        if state.session.as_ref().is_ok_and(|session| Arc::ptr_eq(session, stuck)) {
            state.session = Err(error.clone());
            drop(state);
            stuck.end(error);
        }
    }

    fn begin(&self) -> Arc<Session> {
        let session = Arc::<Session>::default();
        self.state.lock().session = Ok(session.clone());
        session
    }
}

/// The other connections to one address, besides the control connection, which alone shows whether the peer is there.
pub(super) struct Lanes {
    shared: Arc<Shared>,
    address: String,
}

impl Lanes {
    /// Replaces the connections that carry nothing after an interruption of the link, since TCP waits long before it
    /// retransmits. A healthy connection answers a ping soon after the control connection does, even while other calls
    /// on it take long.
    pub(super) fn renew_stuck(&self) {
        for link in self.shared.data_links(&self.address) {
            let (Some(control), Some(probe)) = (self.probe_control(), link.probe()) else { continue };
            self.shared.spawn(async move {
                if control.answer(Instant::now() + PEER_DEAD_AFTER).await.is_err() {
                    return; // the link is interrupted again
                }
                let session = probe.session.clone();
                if probe.answer(Instant::now() + PEER_PROBE_TIMEOUT).await == Err(PeerError::Timeout) {
                    link.give_up(&session);
                }
            });
        }
    }

    fn probe_control(&self) -> Option<QueuedCall> {
        self.shared.known_link(&self.address, Lane::Control)?.probe()
    }

    /// Fails the calls in progress to a peer that is silent.
    fn abandon(&self, error: &io::Error) {
        let error = PeerError::Unreachable(error.to_string().into());
        self.shared.data_links(&self.address).for_each(|link| link.rest(&error));
    }
}

/// Keeps a link connected as long as it is used. Ends the link when dropped.
pub(super) struct Keeper {
    shared: Arc<Shared>,
    link: Arc<Link>,
    key: LinkKey,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.shared.forget(&self.key, &self.link);
        self.link.rest(&match self.shared.is_stopped() {
            true => PeerError::Closed,
            false => PeerError::Unreachable("not connected".into()),
        });
    }
}

impl Keeper {
    pub(super) fn new(shared: Arc<Shared>, link: Arc<Link>, key: LinkKey) -> Self {
        Self { shared, link, key }
    }

    fn lanes(&self) -> Lanes {
        Lanes { shared: self.shared.clone(), address: self.key.0.clone() }
    }

    /// Connects, again and again, until the link is not used any more.
    pub(super) async fn keep(self) {
        let mut pause = PEER_RETRY_MIN;
        let mut last_logged = None;
        let mut next = self.link.session().ok();
        while let Some(session) = next {
            let (connected, error) = self.connect(&session).await;
            self.link.rest(&PeerError::Unreachable(error.to_string().into()));
            if connected && self.key.1 == Lane::Control && error.kind() == io::ErrorKind::TimedOut {
                self.lanes().abandon(&error);
            }
            if connected {
                pause = PEER_RETRY_MIN;
            }
            self.log_failure(connected, error.to_string(), &mut last_logged);
            tokio::select! {
                biased;
                () = sleep(pause.mul_f64(0.75 + chance::fraction() / 2.0)) => {}
                () = self.shared.peer_connected.notified() => {}
            }
            pause = Duration::min(pause * 2, PEER_RETRY_MAX);
            next = self.link.is_wanted().then(|| self.link.begin());
        }
    }

    /// Logs why there is no connection, once a minute unless the reason changes, so that a wrong certificate or address
    /// is visible in the log and does not fill it.
    fn log_failure(&self, connected: bool, error: String, last_logged: &mut Option<(String, Instant)>) {
        let (address, lane) = &self.key;
        let is_news = last_logged.as_ref().is_none_or(|(last, at)| *last != error || at.elapsed() >= PEER_LOG_INTERVAL);
        match connected {
            _ if !is_news => tracing::debug!(address, ?lane, error, "no connection with a peer"),
            true => tracing::info!(address, ?lane, error, "lost a peer"),
            false => tracing::warn!(address, ?lane, error, "cannot reach a peer"),
        }
        if is_news {
            *last_logged = Some((error, Instant::now()));
        }
    }

    /// Connects once, and runs the connection until it breaks. Returns whether it was ever up, and the reason why it
    /// ended.
    async fn connect(&self, session: &Arc<Session>) -> (bool, io::Error) {
        let (address, lane) = &self.key;
        let greet = async {
            let Connected { stream, name } = self.shared.network.dial(address, &self.shared.tls).await?;
            let mut connection = Connection::new(stream, self.shared.hello.clone(), self.shared.clock.clone());
            connection.say_hello(*lane).await?;
            let (hello, _) = connection.hear_hello().await?;
            Connected::check(name.as_deref(), &hello)?;
            Ok((connection, hello))
        };
        let (connection, hello) = match timeout(PEER_HANDSHAKE_TIMEOUT, greet).await {
            Ok(Ok(greeted)) => greeted,
            Ok(Err(error)) => return (false, error),
            Err(_) => return (false, io::Error::new(io::ErrorKind::TimedOut, "connecting took too long")),
        };
        tracing::debug!(address, ?lane, member = hello.member, name = hello.name, "reached a peer");
        let is_control = *lane == Lane::Control;
        let control_connection =
            is_control.then(|| ControlConnection::new(self.shared.connected_members.clone(), &hello, Side::Here));
        let timing = Timing::new(self.shared.clock.clone(), self.shared.hello.clone(), &hello);
        let mut caller = Caller::new(session.clone(), control_connection, timing, &hello);
        if is_control {
            caller = caller.looking_after(self.lanes());
        }
        session.set_peer(hello);
        (true, connection.run(&session.outbox, &mut caller).await)
    }
}
