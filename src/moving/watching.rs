//! The watches of an import, each read by a thread.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use flotilla_proto::json;
use flotilla_proto::value::Value;
use parking_lot::{Condvar, Mutex};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::live::Listed;
use crate::administration::{Client, ClientError};
use crate::limits;

/// What a watch has shown.
#[derive(Debug)]
pub(super) enum Shown {
    /// An object is there like this.
    Put(Value),
    /// An object was deleted.
    Deleted(Value),
    /// Everything up to a resourceVersion was shown.
    Reached(String),
    /// What has changed since is not known any more: the resource is to be listed again. Nothing follows.
    Lost,
}

/// Something that the watch of a resource has shown.
#[derive(Debug)]
pub(super) struct Change {
    /// Whose watch it is.
    pub(super) of: Arc<Listed>,
    /// What it has shown.
    pub(super) shown: Shown,
    /// Its part of what may wait.
    pub(super) held: Held,
}

/// How many bytes of changes may still come to wait.
#[derive(Debug)]
struct Room {
    left: Mutex<usize>,
    given_back: Condvar,
}

/// Bytes of changes that wait; they are given back when this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    room: Arc<Room>,
    bytes: usize,
}

impl Room {
    /// Waits until there is room for so many bytes. What is larger than all of it takes all of it.
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

/// Where watches put what they show.
#[derive(Clone)]
pub(super) struct Sender {
    changes: SyncSender<Change>,
    room: Arc<Room>,
}

/// Changes that wait to be applied, bounded in number and bytes. When nobody listens any more, watches end.
pub(super) fn waiting() -> (Sender, Receiver<Change>) {
    let (changes, receiver) = sync_channel(limits::MOVING_CHANGES_WAITING);
    let room = Room { left: Mutex::new(limits::MOVING_CHANGES_BYTES), given_back: Condvar::new() };
    (Sender { changes, room: Arc::new(room) }, receiver)
}

/// Nobody wants to know any more.
#[derive(Debug)]
struct Unheard;

/// Watches a resource from a version on, on a thread of its own, as long as somebody listens.
pub(super) fn watch(client: Arc<Client>, of: Arc<Listed>, version: String, changes: Sender) -> io::Result<()> {
    let watch = Watch { of, version, changes, pause: limits::MOVING_WATCH_PAUSE };
    let thread = std::thread::Builder::new().name("watch".into()).stack_size(limits::MOVING_WATCH_STACK);
    thread.spawn(move || drop(watch.run(|path| client.download_as(path, "application/json")))).map(drop)
}

struct Watch {
    of: Arc<Listed>,
    /// Up to where everything was shown.
    version: String,
    changes: Sender,
    /// How long to wait before it is begun again.
    pause: Duration,
}

impl Watch {
    /// Watches until its place in the history is lost. `open` asks for what is at a path.
    fn run<R: Read>(mut self, open: impl Fn(&str) -> Result<R, ClientError>) -> Result<(), Unheard> {
        let mut told = false;
        loop {
            match open(&self.path()) {
                Ok(reader) => {
                    told = false;
                    if self.read(reader)? {
                        return self.tell(Shown::Lost, 0);
                    }
                }
                Err(ClientError::Refused { code: 404 | 410, .. }) => return self.tell(Shown::Lost, 0),
                Err(error) if !std::mem::replace(&mut told, true) => {
                    eprintln!("flotilla: {} cannot be watched, it is tried again: {error}", self.of.path);
                }
                Err(_) => {}
            }
            // Also when it was begun: a server may end watches as soon as they begin.
            std::thread::sleep(self.pause);
        }
    }

    fn path(&self) -> String {
        let version = utf8_percent_encode(&self.version, NON_ALPHANUMERIC);
        let (path, timeout) = (&self.of.path, limits::MOVING_WATCH_TIMEOUT.as_secs());
        format!("{path}?watch=true&allowWatchBookmarks=true&timeoutSeconds={timeout}&resourceVersion={version}")
    }

    /// Reads to the end. Returns whether the place in the history is lost.
    fn read(&mut self, reader: impl Read) -> Result<bool, Unheard> {
        let (mut reader, mut line) = (BufReader::new(reader), Vec::new());
        loop {
            line.clear();
            let most = limits::MOVING_CHANGE_BYTES as u64;
            let read = (&mut reader).take(most).read_until(b'\n', &mut line);
            if line.len() as u64 == most && !line.ends_with(b"\n") {
                return Ok(true);
            }
            // A watch that ends goes on where it was.
            let (Ok(1..), Ok(mut event)) = (read, json::parse(&line)) else { return Ok(false) };
            let object = event.get_mut("object").map(std::mem::take).unwrap_or_default();
            let version = object.str_at(&["metadata", "resourceVersion"]).to_owned();
            let shown = match event.str_at(&["type"]) {
                "ADDED" | "MODIFIED" => Shown::Put(object),
                "DELETED" => Shown::Deleted(object),
                "BOOKMARK" => Shown::Reached(version.clone()),
                _ => return Ok(object.at(&["code"]).as_int() == Some(410)),
            };
            if version.is_empty() {
                return Ok(false); // this is no event
            }
            self.tell(shown, line.len())?;
            self.version = version;
        }
    }

    fn tell(&self, shown: Shown, bytes: usize) -> Result<(), Unheard> {
        let held = self.changes.room.take(bytes);
        let change = Change { of: Arc::clone(&self.of), shown, held };
        self.changes.changes.send(change).map_err(|_| Unheard)
    }
}

#[cfg(test)]
#[path = "watching_tests.rs"]
mod tests;
