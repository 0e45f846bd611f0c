//! Who does the work of the log.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::writer::{Preparer, Writer};

/// Runs the writer of a log and the preparer of its segments.
pub(crate) trait Drive: Send + Sync {
    /// Starts both.
    fn start(&self, writer: Writer, preparer: Preparer) -> io::Result<Box<dyn Driven>>;
}

/// A log whose work is done.
pub(crate) trait Driven: Send {
    /// Waits until everything is written that is queued, and the files are let go of. The log is closing already.
    fn finish(self: Box<Self>);
}

/// A thread each: both wait for the disk.
pub(crate) struct Threads;

struct Started {
    writer: JoinHandle<()>,
    preparer: JoinHandle<()>,
    spare: Arc<super::Shared>,
}

impl Drive for Threads {
    fn start(&self, writer: Writer, preparer: Preparer) -> io::Result<Box<dyn Driven>> {
        let spare = preparer.shared().clone();
        let preparer = thread::Builder::new().name("wal-prepare".into()).spawn(move || preparer.run())?;
        let writer = thread::Builder::new().name("wal".into()).spawn(move || writer.run())?;
        Ok(Box::new(Started { writer, preparer, spare }))
    }
}

impl Driven for Started {
    fn finish(self: Box<Self>) {
        let _ = self.writer.join(); // it may still need the next segment
        self.spare.spare.close();
        let _ = self.preparer.join();
    }
}
