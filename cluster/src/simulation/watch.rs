//! Watched values for openraft: those of tokio, except that waiting tasks are woken in the order in which they came.
//! Tokio wakes them in a random order whose source cannot be seeded.

use std::sync::Arc;

use openraft::rt::watch::{RecvError, SendError, Watch, WatchReceiver, WatchSender};
use openraft::{OptionalSend, OptionalSync};
use tokio::sync::{Notify, watch};

/// Makes watched values.
pub(crate) struct SeededWatch;

/// Changes a value.
pub(crate) struct Sender<T> {
    /// `None` only while this is being dropped.
    value: Option<watch::Sender<T>>,
    changed: Arc<Notify>,
}

/// Reads a value.
pub(crate) struct Receiver<T> {
    value: watch::Receiver<T>,
    changed: Arc<Notify>,
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        Sender { value: self.value.clone(), changed: self.changed.clone() }
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Receiver<T> {
        Receiver { value: self.value.clone(), changed: self.changed.clone() }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.value.take();
        self.changed.notify_waiters(); // it may have been the last
    }
}

impl<T> Sender<T> {
    fn value(&self) -> &watch::Sender<T> {
        self.value.as_ref().expect("it is there until dropped")
    }
}

impl Watch for SeededWatch {
    type Sender<T: OptionalSend + OptionalSync> = Sender<T>;
    type Receiver<T: OptionalSend + OptionalSync> = Receiver<T>;
    type Ref<'a, T: OptionalSend + 'a> = watch::Ref<'a, T>;

    fn channel<T: OptionalSend + OptionalSync>(init: T) -> (Sender<T>, Receiver<T>) {
        let ((sender, receiver), changed) = (watch::channel(init), Arc::<Notify>::default());
        let receiver = Receiver { value: receiver, changed: changed.clone() };
        (Sender { value: Some(sender), changed }, receiver)
    }
}

impl<T: OptionalSend + OptionalSync> WatchSender<SeededWatch, T> for Sender<T> {
    fn send(&self, value: T) -> Result<(), SendError<T>> {
        let sent = self.value().send(value).map_err(|error| SendError(error.0));
        self.changed.notify_waiters();
        sent
    }

    fn send_if_modified<F>(&self, modify: F) -> bool
    where
        F: FnOnce(&mut T) -> bool,
    {
        let is_modified = self.value().send_if_modified(modify);
        if is_modified {
            self.changed.notify_waiters();
        }
        is_modified
    }

    fn borrow_watched(&self) -> watch::Ref<'_, T> {
        self.value().borrow()
    }

    fn subscribe(&self) -> Receiver<T> {
        Receiver { value: self.value().subscribe(), changed: self.changed.clone() }
    }
}

impl<T: OptionalSend + OptionalSync> WatchReceiver<SeededWatch, T> for Receiver<T> {
    async fn changed(&mut self) -> Result<(), RecvError> {
        loop {
            let notified = self.changed.notified();
            let mut notified = std::pin::pin!(notified);
            notified.as_mut().enable(); // before looking, so that no change is missed
            match self.value.has_changed() {
                Ok(true) => {
                    self.value.mark_unchanged();
                    return Ok(());
                }
                Ok(false) => notified.await,
                Err(_) => return Err(RecvError(())),
            }
        }
    }

    fn borrow_watched(&self) -> watch::Ref<'_, T> {
        self.value.borrow()
    }

    fn borrow_and_update(&mut self) -> watch::Ref<'_, T> {
        self.value.borrow_and_update()
    }
}
