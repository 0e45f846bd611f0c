//! Tasks that end with whoever started them.

use tokio::task::JoinHandle;

/// A task on the thread of the store, which ends at the latest when this is dropped.
pub(crate) struct Task(JoinHandle<()>);

impl Task {
    /// Starts a task.
    pub(crate) fn spawn(task: impl Future<Output = ()> + 'static) -> Task {
        Task(actix::spawn(task))
    }

    /// Whether it has ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
