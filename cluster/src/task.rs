//! Tasks that end when their owner drops them.

use tokio::task::JoinHandle;

/// A task on the thread of the store. It is aborted when this is dropped.
pub(crate) struct Task(JoinHandle<()>);

impl Task {
    /// Starts a task.
    pub(crate) fn spawn(task: impl Future<Output = ()> + 'static) -> Task {
        Task(actix::spawn(task))
    }

    /// Returns whether the task has ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
