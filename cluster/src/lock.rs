//! The lock on a data directory, which only one process may use.

use std::fs::{DirBuilder, File, Permissions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::limits::{LOCK_INTERVAL, LOCK_WAIT};
use crate::{OpenError, Options};

/// Locks the data directory until the returned file is dropped. Waits a while ([`LOCK_WAIT`]) for another process,
/// since one that was killed holds the lock until the kernel has freed its memory.
pub(crate) fn lock(options: &Options) -> Result<File, OpenError> {
    let directory = &options.directory;
    let failed = |source| OpenError::Directory { directory: directory.clone(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    make_private(directory);
    let path = directory.join("lock");
    let file = File::options().create(true).write(true).truncate(false).mode(0o600).open(&path).map_err(failed)?;
    make_private(&path);
    let began = std::time::Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if began.elapsed() < LOCK_WAIT => std::thread::sleep(LOCK_INTERVAL),
            Err(TryLockError::WouldBlock) => return Err(OpenError::Locked { directory: directory.clone() }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
}

/// Removes all permissions of other users on a file or directory: a process that can open the lock file can hold the
/// lock.
fn make_private(path: &Path) {
    let Ok(found) = std::fs::metadata(path) else { return };
    let mode = found.permissions().mode();
    if mode & 0o077 == 0 {
        return;
    }
    match std::fs::set_permissions(path, Permissions::from_mode(mode & !0o077)) {
        Ok(()) => tracing::info!(path = %path.display(), "removed other users' permissions"),
        Err(error) => tracing::warn!(path = %path.display(), %error, "cannot remove other users' permissions"),
    }
}
