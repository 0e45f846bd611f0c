//! The limits of running a server and a cluster.

use std::time::Duration;

/// How long connecting to a server may take for the commands of administrators.
pub const ADMINISTRATION_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the answer to a command of administrators may take. The server answers a change earlier, finished or not.
pub const ADMINISTRATION_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of the answer to an administrator's command that are read.
pub const ADMINISTRATION_ANSWER_BYTES: u64 = 4 * 1_048_576;

/// How long a request to change the cluster waits for the change. Then it gets 504; a repeated request goes on waiting.
pub const MEMBERS_CHANGE_WAIT: Duration = Duration::from_secs(15);

/// Concurrent backups; more get 429.
pub const BACKUPS: usize = 2;

/// Bytes of a configuration file.
pub const CONFIG_FILE_BYTES: u64 = 1_048_576;

/// Members that a host name may resolve to when they form a cluster.
pub const INITIAL_MEMBERS: usize = 9;

/// How long a member waits before it tries again to create the objects that every cluster has.
pub const BEGIN_INTERVAL: Duration = Duration::from_secs(1);

/// Attempts to update those objects of every cluster that could not be written at first.
pub const RENEWALS: usize = 10;

/// How often a replica that does not lead checks whether the objects that every cluster has exist.
pub const SEED_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// How long a thread may be unresponsive before this is logged.
pub const STALL: Duration = Duration::from_millis(200);

/// How often the watchdog checks threads.
pub const WATCHDOG_INTERVAL: Duration = Duration::from_millis(100);

/// Checks after which the watchdog also asks a thread that is idle.
pub const WATCHDOG_IDLE_LOOKS: u32 = 10;

/// Shortest time between two reports of unresponsive threads.
pub const STALL_LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Connections that the stand-in for etcd accepts on each address.
pub const STAND_IN_CONNECTIONS: usize = 256;

/// The time between two messages of a command that tell the user that it still waits.
pub const ADMINISTRATION_PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// How long the download of a backup may take: about as long as a server keeps the state of a backup.
pub const BACKUP_DOWNLOAD_TIMEOUT: Duration = flotilla_cluster::limits::BACKUP_TIMEOUT;

/// Largest length of a member's name, in bytes: that of a label of a host name (RFC 1035, section 2.3.4).
pub const MEMBER_NAME_BYTES: usize = 63;

/// Objects that every cluster has that are written at the same time; the store batches them.
pub const SEEDED_OBJECTS: usize = 64;

/// How long to wait if the descriptor of the parent process is readable although that process still runs.
pub const PARENT_PAUSE: Duration = Duration::from_millis(100);
