//! The watches of an import, each read by a thread.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use flotilla_proto::json;
use flotilla_proto::value::Value;
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
}

/// Nobody wants to know any more.
struct Unheard;

/// Watches a resource from a version on, on a thread of its own, as long as somebody listens.
pub(super) fn watch(
    client: Arc<Client>,
    of: Arc<Listed>,
    version: String,
    changes: SyncSender<Change>,
) -> io::Result<()> {
    let watch = Watch { client, of, version, changes };
    let thread = std::thread::Builder::new().name("watch".into()).stack_size(limits::MOVING_WATCH_STACK);
    thread.spawn(move || drop(watch.run())).map(drop)
}

struct Watch {
    client: Arc<Client>,
    of: Arc<Listed>,
    /// Up to where everything was shown.
    version: String,
    changes: SyncSender<Change>,
}

impl Watch {
    fn run(mut self) -> Result<(), Unheard> {
        let mut told = false;
        loop {
            let version = utf8_percent_encode(&self.version, NON_ALPHANUMERIC);
            let (path, timeout) = (&self.of.path, limits::MOVING_WATCH_TIMEOUT.as_secs());
            let path = format!(
                "{path}?watch=true&allowWatchBookmarks=true&timeoutSeconds={timeout}&resourceVersion={version}"
            );
            match self.client.download_as(&path, "application/json") {
                Ok(reader) => {
                    told = false;
                    if self.read(reader)? {
                        return self.tell(Shown::Lost);
                    }
                    continue;
                }
                Err(ClientError::Refused { code: 404 | 410, .. }) => return self.tell(Shown::Lost),
                Err(error) if !std::mem::replace(&mut told, true) => {
                    eprintln!("flotilla: {} cannot be watched, it is tried again: {error}", self.of.path);
                }
                Err(_) => {}
            }
            std::thread::sleep(limits::MOVING_WATCH_PAUSE);
        }
    }

    /// Reads to the end. Returns whether the place in the history is lost.
    fn read(&mut self, reader: impl Read) -> Result<bool, Unheard> {
        let (mut reader, mut line) = (BufReader::new(reader), Vec::new());
        loop {
            line.clear();
            let read = (&mut reader).take(limits::MOVING_PAGE_BYTES).read_until(b'\n', &mut line);
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
            self.tell(shown)?;
            self.version = version;
        }
    }

    fn tell(&self, shown: Shown) -> Result<(), Unheard> {
        self.changes.send(Change { of: Arc::clone(&self.of), shown }).map_err(|_| Unheard)
    }
}
