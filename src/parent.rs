//! Noticing the end of the process that has started this one.
//!
//! The signal that Linux sends when a parent ends (prctl(2), `PR_SET_PDEATHSIG`) is about the thread that has started a
//! process, which may end long before the others of its process. A descriptor of the whole process (pidfd_open(2))
//! becomes readable once all of it has ended, by whatever.

use std::io;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};
use tokio::net::unix::pipe::Receiver;

/// How long to wait when the descriptor is said to be readable and the process is still there.
const PAUSE: Duration = Duration::from_millis(100);

/// The process that has started this one.
#[derive(Debug)]
pub struct Parent {
    id: Pid,
    /// Its descriptor, waited for as for a pipe; nothing is read from it.
    descriptor: Receiver,
}

impl Parent {
    /// Finds it. To be called within a runtime that polls for input.
    ///
    /// # Errors
    /// When it has ended already, or cannot be seen from here, as from a container of which this is the first process.
    pub fn find() -> io::Result<Self> {
        let Some(id) = getppid() else {
            return Err(io::Error::other("the process that has started this one cannot be seen from here"));
        };
        let ended = || io::Error::other("the process that has started this one has ended already");
        let descriptor = pidfd_open(id, PidfdFlags::NONBLOCK).map_err(|error| match error {
            rustix::io::Errno::SRCH => ended(),
            error => error.into(),
        })?;
        // It may have ended before, and its number may be somebody else's now.
        if getppid() != Some(id) {
            return Err(ended());
        }
        Ok(Self { id, descriptor: Receiver::from_owned_fd_unchecked(descriptor)? })
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// When the runtime ends.
    pub async fn ended(&self) -> io::Result<()> {
        loop {
            self.descriptor.readable().await?;
            // Who has lost its parent has another one.
            if getppid() != Some(self.id) {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
