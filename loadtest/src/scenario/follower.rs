//! One watch and the state that it has received. It lists, watches, and resumes after each end.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::Incoming;

use super::check::{Broken, Outcome, Seen, Watched};
use super::file::{Reflector, Sync};
use super::items::Items;
use super::mark::{Event, Object};
use super::pool::Pool;
use super::record::{Kind, Times};
use super::run::Run;
use crate::connection::{Call, Client, Error};
use crate::limits;

/// A line buffer with a larger capacity is freed after its line.
const KEPT_LINE_BYTES: usize = 4_096;

/// The kinds of operations that an actor's watches record.
#[derive(Debug, Clone, Copy)]
pub struct Kinds {
    /// The time until a client has received all initial objects.
    pub sync: Kind,
    /// The time until a watch is resumed after an end.
    pub resume: Kind,
    /// The time from when a change was due until its event arrives.
    pub delivery: Kind,
}

/// A watch.
pub struct Follower {
    /// The name in descriptions.
    pub name: String,
    /// The path of the watched collection.
    pub path: String,
    /// The state that the watch has received.
    pub watched: RefCell<Watched>,
    /// The number of the actor's connection that the watch uses.
    pub connection: usize,
    /// The actor's settings.
    pub how: Rc<Reflector>,
    /// The kinds of operations to record.
    pub kinds: Kinds,
    /// Whether the watch has ever received all initial objects.
    pub has_synced: Cell<bool>,
}

/// The reason why a watch ended.
enum End {
    /// The server ended the watch, or the connection broke.
    Ended,
    /// The server's history does not reach back to the watch's revision.
    Expired,
    /// The server refused the watch, which is retried after a pause.
    Refused,
}

/// Counts an open watch until it is dropped.
struct Open<'a>(&'a Cell<u64>);

impl<'a> Open<'a> {
    fn new(count: &'a Cell<u64>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

fn with_query(path: &str, query: &str) -> String {
    format!("{path}{}{query}", if path.contains('?') { '&' } else { '?' })
}

impl Follower {
    /// Watches until it is dropped. The first latency counts from `since`.
    pub async fn follow(self: Rc<Self>, run: Rc<Run>, connections: Rc<Pool>, since: Instant) {
        let (mut since, mut wait) = (since, Duration::ZERO);
        loop {
            let (client, opened) = match connections.client(self.connection).await {
                Ok(client) => client,
                Err(_) => {
                    pause(&mut wait).await;
                    continue;
                }
            };
            let end = self.session(&run, client, since).await;
            if !matches!(end, Ok(End::Refused)) {
                since = Instant::now();
            }
            match end {
                Ok(End::Ended) => wait = Duration::ZERO,
                Ok(End::Expired) => {
                    run.checked.expired.set(run.checked.expired.get() + 1);
                    self.watched.borrow_mut().begin();
                }
                Ok(End::Refused) => pause(&mut wait).await,
                Err(_) => {
                    connections.broke(self.connection, opened).await;
                    pause(&mut wait).await;
                }
            }
            run.checked.resumed.set(run.checked.resumed.get() + 1);
        }
    }

    /// Lists if necessary, and watches until the watch ends.
    async fn session(&self, run: &Run, mut client: Client, since: Instant) -> Result<End, Error> {
        let is_synced = self.watched.borrow().is_synced;
        if !is_synced && self.how.sync != Sync::WatchList {
            let limit = Duration::from_secs(limits::REQUEST_SECONDS_MAX);
            let listed = tokio::time::timeout(limit, self.list(run, &mut client)).await.map_err(|_| Error::Timeout)?;
            if let Some(end) = listed? {
                return Ok(end);
            }
            self.synced(run, since);
        }
        let query = match (is_synced, self.how.sync) {
            (false, Sync::WatchList) => {
                self.watched.borrow_mut().begin();
                "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned()
            }
            _ => format!("watch=1&allowWatchBookmarks=true&resourceVersion={}", self.watched.borrow().revision),
        };
        let call = Call::get(with_query(&self.path, &query));
        let limit = Duration::from_secs(limits::REQUEST_SECONDS_MAX);
        let sent = Instant::now();
        let response = tokio::time::timeout(limit, client.send(&call)).await.map_err(|_| Error::Timeout)??;
        if !response.status().is_success() {
            return Ok(self.refused(run, response.status(), since));
        }
        if is_synced && self.has_synced.get() {
            run.recorder.borrow_mut().success(self.kinds.resume, Times { due: since, sent, done: Instant::now() });
        }
        let _open = Open::new(&run.watches);
        self.events(run, response.into_body(), since).await
    }

    fn synced(&self, run: &Run, since: Instant) {
        self.has_synced.set(true);
        run.recorder.borrow_mut().success(self.kinds.sync, Times { due: since, sent: since, done: Instant::now() });
    }

    fn refused(&self, run: &Run, status: StatusCode, since: Instant) -> End {
        match status {
            StatusCode::GONE => End::Expired,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => End::Refused,
            _ => {
                let sort = format!("HTTP {}", status.as_u16());
                let what = || format!("{} of {}: {status}", self.name, self.path);
                run.recorder.borrow_mut().failure(self.kinds.sync, since, &sort, what);
                End::Refused
            }
        }
    }

    /// Reads all pages of a list. Returns an end if a page is refused.
    async fn list(&self, run: &Run, client: &mut Client) -> Result<Option<End>, Error> {
        self.watched.borrow_mut().begin();
        let first = match self.how.sync {
            Sync::Cached => "resourceVersion=0".to_owned(),
            _ => format!("limit={}", self.how.page),
        };
        let mut query = first.clone();
        loop {
            let call = Call::get(with_query(&self.path, &query));
            let take = |object: &Object<'_>| self.watched.borrow_mut().take(object, &run.checked.violations);
            match page(client, &call, take).await? {
                Ok((revision, next)) if next.is_empty() => {
                    self.watched.borrow_mut().complete(revision);
                    return Ok(None);
                }
                Ok((_, next)) => query = format!("{first}&continue={next}"),
                Err(StatusCode::OK) => {
                    run.broken(Broken::WrongBody, || format!("{}: the answer to {} is no list", self.name, call.path));
                    return Ok(Some(End::Refused));
                }
                Err(status) => return Ok(Some(self.refused(run, status, Instant::now()))),
            }
        }
    }

    /// Processes the events of a watch until it ends.
    async fn events(&self, run: &Run, mut body: Incoming, since: Instant) -> Result<End, Error> {
        let mut line = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            let arrived = Instant::now();
            let mut rest = &data[..];
            while let Some(end) = memchr::memchr(b'\n', rest) {
                let (own, after) = rest.split_at(end + 1);
                rest = after;
                let is_expired = if line.is_empty() {
                    self.event(run, own, arrived, since)
                } else {
                    line.extend_from_slice(own);
                    let is_expired = self.event(run, &line, arrived, since);
                    line.clear();
                    is_expired
                };
                if is_expired {
                    return Ok(End::Expired);
                }
            }
            if line.is_empty() && line.capacity() > KEPT_LINE_BYTES {
                line = BytesMut::new();
            }
            line.extend_from_slice(rest);
            if line.len() > limits::LIST_ITEM_BYTES_MAX {
                return Err(Error::LongLine);
            }
            if let Some(micros) = (data.len() as u64 * 1_000_000).checked_div(self.how.read_bytes_per_second) {
                tokio::time::sleep(Duration::from_micros(micros)).await;
            }
        }
        Ok(End::Ended)
    }

    /// Processes one event. Returns whether the watch has expired.
    fn event(&self, run: &Run, line: &[u8], arrived: Instant, since: Instant) -> bool {
        run.checked.events.set(run.checked.events.get() + 1);
        let event = match serde_json::from_slice::<Event<'_>>(line) {
            Ok(event) => event,
            Err(error) => {
                run.broken(Broken::WrongBody, || format!("{}: an event is not understood: {error}", self.name));
                return false;
            }
        };
        let outcome = self.watched.borrow_mut().event(&event, &self.name, &run.checked.violations);
        match outcome {
            Outcome::Change(Some(due)) => {
                let due = run.instant(due);
                if due >= run.began() {
                    let times = Times { due, sent: due, done: arrived.max(due) };
                    run.recorder.borrow_mut().success(self.kinds.delivery, times);
                }
            }
            Outcome::Synced => self.synced(run, since),
            Outcome::Expired => return true,
            Outcome::Change(None) | Outcome::Nothing => {}
        }
        false
    }
}

/// Waits, each time twice as long as before up to a bound.
async fn pause(wait: &mut Duration) {
    *wait = (*wait * 2).clamp(Duration::from_millis(50), limits::RETRY_WAIT_MAX);
    tokio::time::sleep(*wait).await;
}

/// Reads one page of a list. Returns its revision and the token of the next page. The inner `Err` contains the status
/// of a refusal, or 200 if the answer is not a list.
async fn page(
    client: &mut Client,
    call: &Call,
    mut take: impl FnMut(&Object<'_>),
) -> Result<Result<(u64, String), StatusCode>, Error> {
    let response = client.send(call).await?;
    let status = response.status();
    if !status.is_success() {
        return Ok(Err(status));
    }
    let (mut body, mut items, mut is_list) = (response.into_body(), Items::default(), true);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let mut are_objects = true;
        is_list &= items.push(&data, |item| match serde_json::from_slice::<Object<'_>>(item) {
            Ok(object) => take(&object),
            Err(_) => are_objects = false,
        });
        is_list &= are_objects;
    }
    Ok(items.metadata().filter(|_| is_list).ok_or(StatusCode::OK))
}

/// Reads the whole current list. Returns its objects by their keys.
pub async fn list(run: &Run, path: &str) -> Result<HashMap<u64, Seen>, Error> {
    let mut found = HashMap::new();
    let mut query = "limit=500".to_owned();
    let (mut client, _) = run.pool.client(0).await?;
    loop {
        let call = Call::get(with_query(path, &query));
        let mut take = |object: &Object<'_>| {
            if let Ok(revision) = object.revision() {
                found.insert(object.key(), Seen { revision, sequence: 0 });
            }
        };
        match page(&mut client, &call, &mut take).await? {
            Ok((_, next)) if next.is_empty() => return Ok(found),
            Ok((_, next)) => query = format!("limit=500&continue={next}"),
            Err(status) => return Err(Error::Refused { what: call.path, status, body: String::new() }),
        }
    }
}
