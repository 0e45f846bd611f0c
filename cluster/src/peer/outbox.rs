//! Frames that wait to be sent on one connection.

use std::collections::VecDeque;
use std::io;
use std::task::Context;

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

use super::frame::Frame;
use crate::limits::PEER_FRAMES_MAX;

/// A frame, and the member for which it is meant; `None` for any member.
pub(super) struct Outgoing {
    pub(super) frame: Frame,
    pub(super) member: Option<u64>,
}

/// A queue of frames from any thread to the task of the connection.
#[derive(Default)]
pub(super) struct Outbox {
    queue: Mutex<FrameQueue>,
    waker: AtomicWaker,
}

#[derive(Default)]
struct FrameQueue {
    frames: VecDeque<Outgoing>,
    bytes: usize,
    /// Whether the task will look at the queue without being woken.
    awake: bool,
    /// The reason why the connection must end, if it must.
    closed: Option<&'static str>,
}

impl Outbox {
    /// Adds a frame. Returns it as an error if the queue has `frames_max` frames already, or would have more than
    /// `bytes_max` bytes. Drops it if the connection has ended.
    pub(super) fn push_within(&self, outgoing: Outgoing, frames_max: usize, bytes_max: usize) -> Result<(), Outgoing> {
        let mut queue = self.queue.lock();
        let bytes = outgoing.frame.payload.len();
        if queue.closed.is_some() {
            return Ok(());
        }
        if queue.frames.len() >= frames_max || queue.bytes + bytes > bytes_max {
            return Err(outgoing);
        }
        queue.bytes += bytes;
        queue.frames.push_back(outgoing);
        let wake = !std::mem::replace(&mut queue.awake, true);
        drop(queue);
        if wake {
            self.waker.wake();
        }
        Ok(())
    }

    /// Adds a small frame that cannot be refused. Ends the connection when too many wait.
    pub(super) fn push(&self, frame: Frame) {
        if self.push_within(Outgoing { frame, member: None }, PEER_FRAMES_MAX, usize::MAX).is_err() {
            self.close("too many frames wait to be sent");
        }
    }

    /// Takes the next frame. When there is none, the task is woken for the next one.
    pub(super) fn pop(&self) -> Option<Outgoing> {
        let mut queue = self.queue.lock();
        let next = queue.frames.pop_front();
        match &next {
            Some(outgoing) => queue.bytes -= outgoing.frame.payload.len(),
            None => queue.awake = false,
        }
        next
    }

    /// Registers the task that is about to look at the queue.
    ///
    /// # Errors
    /// Fails when the connection must end.
    pub(super) fn attend(&self, task: &Context<'_>) -> io::Result<()> {
        self.waker.register(task.waker());
        let mut queue = self.queue.lock();
        queue.awake = true;
        queue.closed.map_or(Ok(()), |why| Err(io::Error::new(io::ErrorKind::ConnectionAborted, why)))
    }

    /// Drops the frames that wait, and ends the connection.
    pub(super) fn close(&self, why: &'static str) {
        let mut queue = self.queue.lock();
        queue.closed.get_or_insert(why);
        queue.bytes = 0;
        let frames = std::mem::take(&mut queue.frames);
        drop(queue);
        drop(frames);
        self.waker.wake();
    }
}
