//! Detects the end of the parent process.
//!
//! The signal that Linux sends when a parent ends (prctl(2), `PR_SET_PDEATHSIG`) concerns the thread that started the
//! child. That thread may end long before its process. A pidfd (pidfd_open(2)) becomes readable once the whole process
//! has ended, for whatever reason.

use std::io;

use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};
use tokio::net::unix::pipe::Receiver;

use crate::limits;

/// The parent process.
#[derive(Debug)]
pub struct Parent {
    id: Pid,
    /// Its pidfd, polled like a pipe. Nothing is read from it.
    descriptor: Receiver,
}

impl Parent {
    /// Finds the parent process. Must be called within a runtime that polls for input.
    ///
    /// # Errors
    /// The parent has already ended, or is not visible, as for the first process of a container.
    pub fn find() -> io::Result<Self> {
        let Some(id) = getppid() else {
            return Err(io::Error::other("the parent process is not visible from here"));
        };
        let ended = || io::Error::other("the parent process has already ended");
        let descriptor = pidfd_open(id, PidfdFlags::NONBLOCK).map_err(|error| match error {
            rustix::io::Errno::SRCH => ended(),
            error => error.into(),
        })?;
        // The parent may have ended before, and its process id may belong to another process now.
        if getppid() != Some(id) {
            return Err(ended());
        }
        Ok(Self { id, descriptor: Receiver::from_owned_fd_unchecked(descriptor)? })
    }

    /// Waits until the parent has ended.
    ///
    /// # Errors
    /// The runtime stops.
    pub async fn ended(&self) -> io::Result<()> {
        loop {
            self.descriptor.readable().await?;
            // A process that lost its parent gets another one.
            if getppid() != Some(self.id) {
                return Ok(());
            }
            tokio::time::sleep(limits::PARENT_PAUSE).await;
        }
    }
}
