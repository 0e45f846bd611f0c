//! The commands `flotilla backup` and `flotilla restore`.

mod founding;
mod restoring;
mod saving;

pub use founding::Founding;
pub use restoring::{Restore, RestoreCommandError};
pub use saving::{Backup, BackupCommandError, Source};

/// GET returns a backup of everything that the server stores.
pub const BACKUP_PATH: &str = "/flotilla/v1/backup";
