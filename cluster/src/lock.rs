//! Holding a data directory.

use std::fs::{DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::limits::{LOCK_INTERVAL, LOCK_WAIT};
use crate::{OpenError, Options};

/// The file that is locked. Whoever can open it can lock it, and so keep the store from starting: nobody but its owner
/// can, whoever has made it.
fn lock_file(path: &Path) -> io::Result<File> {
    let file = File::options().create(true).write(true).truncate(false).mode(0o600).open(path)?;
    let permissions = file.metadata()?.permissions();
    if permissions.mode() & 0o077 != 0
        && let Err(error) = file.set_permissions(Permissions::from_mode(0o600))
    {
        tracing::warn!(%error, path = %path.display(), "others can open this file, and keep the store from starting");
    }
    Ok(file)
}

/// Takes hold of the data directory, until the file is dropped. A process that was killed lets go of it only when it
/// has given back its memory, which is waited for.
pub(crate) fn lock(options: &Options) -> Result<File, OpenError> {
    let directory = &options.directory;
    let failed = |source| OpenError::Directory { directory: directory.clone(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    let file = lock_file(&directory.join("lock")).map_err(failed)?;
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
