//! The watches of an import. Each has its own thread.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use flotilla_proto::json;
use flotilla_proto::value::Value;
use parking_lot::{Condvar, Mutex};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::live::SourceResource;
use crate::administration::{Client, ClientError};
use crate::limits;
use crate::tasks;

/// An event of a watch.
#[derive(Debug)]
pub(super) enum WatchEvent {
    /// An object was added or changed.
    Put(Value),
    /// An object was deleted.
    Deleted(Value),
    /// All changes up to this resourceVersion were delivered.
    Reached(String),
    /// Changes were missed: the resource must be listed again. This is the last event.
    Lost,
}

/// An event with the resource that was watched.
#[derive(Debug)]
pub(super) struct WatchedChange {
    /// The resource.
    pub(super) of: Arc<SourceResource>,
    /// The event.
    pub(super) shown: WatchEvent,
    /// Counts the event against the size limit of waiting events.
    pub(super) held: Held,
}

/// The remaining size of waiting events, in bytes.
#[derive(Debug)]
struct Room {
    left: Mutex<usize>,
    given_back: Condvar,
}

/// The size of a waiting event. It is freed when this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    room: Arc<Room>,
    bytes: usize,
}

impl Room {
    /// Waits until an event of this size fits. An event larger than the limit counts as the whole limit.
    fn take(self: &Arc<Self>, bytes: usize) -> Held {
        let bytes = bytes.min(limits::MOVING_CHANGES_BYTES);
        let mut left = self.left.lock();
        self.given_back.wait_while(&mut left, |left| *left < bytes);
        *left -= bytes;
        Held { room: Arc::clone(self), bytes }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        *self.room.left.lock() += self.bytes;
        self.room.given_back.notify_all();
    }
}

/// Sends the events of watches.
#[derive(Clone)]
pub(super) struct Sender {
    changes: SyncSender<WatchedChange>,
    room: Arc<Room>,
}

/// Returns both ends of the queue of events, which is bounded in number and bytes. The watches end when the receiver is
/// dropped.
pub(super) fn waiting() -> (Sender, Receiver<WatchedChange>) {
    let (changes, receiver) = sync_channel(limits::MOVING_CHANGES_WAITING);
    let room = Room { left: Mutex::new(limits::MOVING_CHANGES_BYTES), given_back: Condvar::new() };
    (Sender { changes, room: Arc::new(room) }, receiver)
}

/// The receiver was dropped.
#[derive(Debug)]
struct ReceiverDropped;

/// Watches a resource from a version on, on its own thread, until the receiver is dropped.
pub(super) fn watch(client: Arc<Client>, of: Arc<SourceResource>, version: String, changes: Sender) -> io::Result<()> {
    let watch = Watch { of, version, changes, pause: limits::MOVING_WATCH_PAUSE };
    let run = move || drop(watch.run(|path| client.download_as(path, "application/json")));
    tasks::thread("watch", Some(limits::MOVING_WATCH_STACK), run).map(drop)
}

struct Watch {
    of: Arc<SourceResource>,
    /// The version up to which all changes were delivered.
    version: String,
    changes: Sender,
    /// How long to wait before the watch begins again.
    pause: Duration,
}

impl Watch {
    /// Watches until the server no longer has the version. `open` requests a path.
    fn run<R: Read>(mut self, open: impl Fn(&str) -> Result<R, ClientError>) -> Result<(), ReceiverDropped> {
        let mut logged = false;
        loop {
            match open(&self.path()) {
                Ok(reader) => {
                    logged = false;
                    if self.read(reader)? {
                        return self.send(WatchEvent::Lost, 0);
                    }
                }
                Err(ClientError::Refused { code: 404 | 410, .. }) => return self.send(WatchEvent::Lost, 0),
                Err(error) if !std::mem::replace(&mut logged, true) => {
                    eprintln!("flotilla: {} cannot be watched; trying again: {error}", self.of.path);
                }
                Err(_) => {}
            }
            // This also delays a watch that began: a server may end watches as soon as they begin.
            std::thread::sleep(self.pause);
        }
    }

    fn path(&self) -> String {
        let version = utf8_percent_encode(&self.version, NON_ALPHANUMERIC);
        let (path, timeout) = (&self.of.path, limits::MOVING_WATCH_TIMEOUT.as_secs());
        format!("{path}?watch=true&allowWatchBookmarks=true&timeoutSeconds={timeout}&resourceVersion={version}")
    }

    /// Reads a watch to its end. Returns whether the resource must be listed again.
    fn read(&mut self, reader: impl Read) -> Result<bool, ReceiverDropped> {
        let (mut reader, mut line) = (BufReader::new(reader), Vec::new());
        loop {
            line.clear();
            let most = limits::MOVING_CHANGE_BYTES as u64;
            let read = (&mut reader).take(most).read_until(b'\n', &mut line);
            if line.len() as u64 == most && !line.ends_with(b"\n") {
                return Ok(true);
            }
            // A watch that ends is continued from the last version.
            let (Ok(1..), Ok(mut event)) = (read, json::parse(&line)) else { return Ok(false) };
            let object = event.get_mut("object").map(std::mem::take).unwrap_or_default();
            let version = object.str_at(&["metadata", "resourceVersion"]).to_owned();
            let shown = match event.str_at(&["type"]) {
                "ADDED" | "MODIFIED" => WatchEvent::Put(object),
                "DELETED" => WatchEvent::Deleted(object),
                "BOOKMARK" => WatchEvent::Reached(version.clone()),
                _ => return Ok(object.at(&["code"]).as_int() == Some(410)),
            };
            if version.is_empty() {
                return Ok(false); // not an event
            }
            self.send(shown, line.len())?;
            self.version = version;
        }
    }

    fn send(&self, shown: WatchEvent, bytes: usize) -> Result<(), ReceiverDropped> {
        let held = self.changes.room.take(bytes);
        let change = WatchedChange { of: Arc::clone(&self.of), shown, held };
        self.changes.changes.send(change).map_err(|_| ReceiverDropped)
    }
}

#[cfg(test)]
#[path = "watching_tests.rs"]
mod tests;
