//! Runs the writer of the log and the preparer of its segments: on threads, or step by step in tests.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::writer::{LogWriter, Preparer};
use crate::tasks;

/// Runs the writer of a log and the preparer of its segments.
pub(crate) trait LogRunner: Send + Sync {
    /// Starts both.
    fn start(&self, writer: LogWriter, preparer: Preparer) -> io::Result<Box<dyn RunningLog>>;
}

/// A log whose writer and preparer run.
pub(crate) trait RunningLog: Send {
    /// Waits until everything queued is written and the files are closed. The log must be closing already.
    fn finish(self: Box<Self>);
}

/// Runs the writer and the preparer, each on a thread of its own, since both wait for the disk.
pub(crate) struct Threads;

struct Started {
    writer: JoinHandle<()>,
    preparer: JoinHandle<()>,
    spare: Arc<super::Shared>,
}

impl LogRunner for Threads {
    fn start(&self, writer: LogWriter, preparer: Preparer) -> io::Result<Box<dyn RunningLog>> {
        let spare = preparer.shared().clone();
        let preparer = tasks::thread("wal-prepare", None, move || preparer.run())?;
        let writer = tasks::thread("wal", None, move || writer.run())?;
        Ok(Box::new(Started { writer, preparer, spare }))
    }
}

impl RunningLog for Started {
    fn finish(self: Box<Self>) {
        let _ = self.writer.join(); // first, since it may still need the next segment
        self.spare.spare.close();
        let _ = self.preparer.join();
    }
}
