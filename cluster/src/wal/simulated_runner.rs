//! Runs the writer and the preparer of a log as tasks in simulated time.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::sleep;

use super::runner::{LogRunner, RunningLog};
use super::writer::{LogWriter, Preparer};
use super::{Draft, Shared};
use crate::disk::simulated::Pace;
use crate::tasks;

/// Runs the writer and the preparer as tasks on the runtime on which the log is opened.
pub(crate) struct Tasks {
    pub(crate) pace: Pace,
}

/// The interval at which the tasks look for work.
const INTERVAL: Duration = Duration::from_millis(1);

struct SimulatedLog {
    shared: Arc<Shared>,
    writer: LogWriter,
    preparer: Preparer,
    /// A draft that was written and is not flushed yet.
    put: Option<Draft>,
    ended: bool,
}

impl LogRunner for Tasks {
    fn start(&self, writer: LogWriter, preparer: Preparer) -> io::Result<Box<dyn RunningLog>> {
        let shared = preparer.shared().clone();
        let log = Arc::new(Mutex::new(SimulatedLog { shared, writer, preparer, put: None, ended: false }));
        tasks::detached_here("prepare", prepare(log.clone(), self.pace.clone()));
        tasks::detached_here("write", write(log.clone(), self.pace.clone()));
        Ok(Box::new(Finishing(log)))
    }
}

async fn prepare(log: Arc<Mutex<SimulatedLog>>, pace: Pace) {
    while !log.lock().ended {
        sleep(INTERVAL).await;
        if log.lock().shared.spare.is_wanted() {
            sleep(pace()).await;
            log.lock().prepare();
        }
    }
}

async fn write(log: Arc<Mutex<SimulatedLog>>, pace: Pace) {
    while !log.lock().shared.spare.is_ready() {
        sleep(INTERVAL).await;
    }
    log.lock().begin();
    while !log.lock().ended {
        let Some(draft) = log.lock().writer.next(false) else {
            sleep(INTERVAL).await;
            continue;
        };
        while log.lock().lacks_segment(&draft) {
            sleep(INTERVAL).await;
        }
        log.lock().put(draft);
        sleep(pace()).await;
        log.lock().flush();
    }
}

impl SimulatedLog {
    fn prepare(&mut self) {
        if let Some(attempts) = self.shared.spare.wanted() {
            self.preparer.prepare(attempts);
        }
    }

    /// Returns whether a draft must wait for the next segment.
    fn lacks_segment(&self, draft: &Draft) -> bool {
        let lacks = self.writer.is_beyond(draft) && !self.shared.spare.is_ready() && !self.ended;
        if lacks {
            self.shared.spare.want();
        }
        lacks
    }

    fn begin(&mut self) {
        if let Err(error) = self.writer.begin() {
            self.fail(Vec::new(), &error);
        }
    }

    fn put(&mut self, mut draft: Draft) {
        match self.writer.put(&mut draft) {
            Ok(()) => self.put = Some(draft),
            Err(error) => self.fail(draft.callbacks, &error),
        }
    }

    fn flush(&mut self) {
        let Some(draft) = self.put.take() else { return };
        match self.writer.flush(&draft) {
            Ok(()) => self.writer.finish(draft),
            Err(error) => self.fail(draft.callbacks, &error),
        }
    }

    fn fail(&mut self, callbacks: Vec<super::Callback>, error: &io::Error) {
        self.ended = true;
        self.writer.fail(callbacks, error);
    }
}

struct Finishing(Arc<Mutex<SimulatedLog>>);

impl RunningLog for Finishing {
    fn finish(self: Box<Self>) {
        let mut log = self.0.lock();
        log.flush();
        while !log.ended {
            let Some(draft) = log.writer.next(false) else { break };
            if log.lacks_segment(&draft) {
                log.prepare();
            }
            log.shared.spare.close(); // no other task would make a segment while the writer waits for one
            log.put(draft);
            log.flush();
        }
        log.ended = true;
        log.shared.spare.close();
    }
}
