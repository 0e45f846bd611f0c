//! Options with which a store is opened, and the errors of opening it.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use compact_str::CompactString;
use futures_util::future::LocalBoxFuture;
use rustls::pki_types::CertificateDer;

use crate::disk::KeyWrapping;
use crate::shard_map::ShardMapError;
use crate::wal::WalError;
use crate::{Revision, TableId, limits};

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// The data directory. Created when missing; used by one store at a time.
    pub directory: PathBuf,
    /// How long superseded versions and changes can be read. At least a few seconds, or lists cannot be paged.
    pub history_age_max: Duration,
    /// Bytes of memory that the history of one table may take. The oldest history is dropped first, except while a
    /// snapshot that is not older than `snapshot_hold_max` needs it.
    pub history_bytes_max: usize,
    /// How long a snapshot keeps its revision readable.
    pub snapshot_hold_max: Duration,
    /// Bytes appended to the log of a group after which a snapshot of the group is written; more when its objects take
    /// more.
    pub snapshot_log_bytes: u64,
    /// Size of a segment of the write-ahead log, in bytes. The disk must always have room for two. It must be several
    /// times the size of a frame: a frame that does not fit into a segment is not written.
    pub wal_segment_bytes: u64,
    /// Whether writes are acknowledged before they are on the disk. They are then lost when the machine fails.
    pub unsafe_no_fsync: bool,
    /// Encrypts the keys with which the log and the snapshots are encrypted on the disk. `None` if they are not
    /// encrypted. Files that are there already are stored anew when a store is opened with other keys.
    pub key_wrapping: Option<Arc<dyn KeyWrapping>>,
    /// The replicas of the store. `None` for a store with a single replica, which does not listen for others.
    pub membership: Option<Membership>,
    /// The name and address under which a store without a membership founds a cluster, so that others can join once it
    /// is started with a membership. `None` for a store that stays alone.
    pub founder: Option<Founder>,
    /// Whether all other replicas of this store are gone for good. This one goes on as the only replica, under its old
    /// name. See [`crate::salvage`].
    pub is_survivor: bool,
    /// A new store assigns only revisions above this one.
    pub above: Revision,
    /// The number of data groups, `g1` and so on, besides the group `default`. Tables that are configured with shards
    /// are spread over them. Only a new store uses this number and the shards of `tables`; an existing one keeps its
    /// shard map.
    pub groups: u8,
    /// Options of single tables, where they differ from the default.
    pub tables: BTreeMap<TableId, TableOptions>,
    /// Makes a task that the store's thread runs besides its work, so that the owner can watch whether the thread still
    /// responds.
    pub background_task: Option<BackgroundTask>,
    /// Called with the reason when the store cannot go on: a write or fsync of the log failed, so that the log can no
    /// longer be trusted to be durable, or the store has lost writes that it acknowledged. It must end the process; the
    /// store answers nothing any more.
    pub on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Options {
    /// Returns the default options for a data directory.
    pub fn new(directory: impl Into<PathBuf>) -> Options {
        Options {
            directory: directory.into(),
            history_age_max: limits::HISTORY_AGE_MAX,
            history_bytes_max: limits::HISTORY_BYTES_MAX,
            snapshot_hold_max: limits::SNAPSHOT_HOLD_MAX,
            snapshot_log_bytes: limits::SNAPSHOT_LOG_BYTES,
            wal_segment_bytes: limits::WAL_SEGMENT_BYTES,
            unsafe_no_fsync: false,
            key_wrapping: None,
            membership: None,
            founder: None,
            is_survivor: false,
            above: Revision::ZERO,
            groups: 0,
            tables: BTreeMap::new(),
            background_task: None,
            on_fatal: Arc::new(|reason| {
                tracing::error!(reason, "the store cannot go on: ending the process");
                std::process::exit(70);
            }),
        }
    }
}

/// Makes a task for the store's thread.
pub type BackgroundTask = Arc<dyn Fn() -> LocalBoxFuture<'static, ()> + Send + Sync>;

/// The part of the options by which a replica is one of several.
#[derive(Clone, Debug)]
pub struct Membership {
    /// The name of this replica; unique in the cluster.
    pub name: String,
    /// The address on which it listens for other replicas.
    pub peer_listen: SocketAddr,
    /// The address at which other replicas reach it, `HOST:PORT`. It is sent to those that do not know it from
    /// [`Initial::Members`].
    pub advertise: String,
    /// The address at which clients reach this server, for [`crate::Store::servers`] of the others; may be empty.
    pub serves: String,
    /// The members that form the cluster.
    pub initial: Initial,
    /// How connections between replicas are secured.
    pub tls: PeerTls,
}

/// The members that form a new cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Initial {
    /// The peer address of each member, `HOST:PORT`, by name; this replica is among them.
    Members(BTreeMap<String, String>),
    /// The members that answer at the addresses of a host name, which is resolved again until `size` of them answer.
    Found {
        /// The host name, and the port on which all of them listen: `HOST:PORT`.
        address: String,
        /// The number of members that form the cluster.
        size: usize,
    },
}

/// The first member of a cluster that others will join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Founder {
    /// Its name.
    pub name: String,
    /// The address at which others will reach it, `HOST:PORT`.
    pub address: String,
}

/// How connections between replicas are secured by TLS. Each side must verify the certificate of the other; the DNS
/// name in it is [`PeerTls::SERVER_NAME`].
#[derive(Clone)]
pub struct PeerTls {
    /// Configuration of connections to other replicas.
    pub client: Arc<rustls::ClientConfig>,
    /// Configuration of connections from other replicas. It must demand a certificate.
    pub server: Arc<rustls::ServerConfig>,
    /// Returns the member name for which a certificate was issued. A replica that announces another name is refused.
    pub name_of: fn(&CertificateDer<'_>) -> Option<String>,
}

impl PeerTls {
    /// The DNS name in the certificate of every replica.
    pub const SERVER_NAME: &str = "flotilla-peer";

    /// Returns the name of the member that presented these certificates. Fails when the first one names no member.
    pub(crate) fn name(&self, shown: Option<&[CertificateDer<'_>]>) -> io::Result<String> {
        let name = shown.and_then(<[_]>::first).and_then(self.name_of);
        name.ok_or_else(|| io::Error::new(io::ErrorKind::PermissionDenied, "its certificate names no member"))
    }
}

impl fmt::Debug for PeerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PeerTls")
    }
}

/// How one table is kept.
#[derive(Clone, Debug, Default)]
pub struct TableOptions {
    /// The number of shards, which are spread over the data groups. `None` for one shard in the group `default`.
    pub shards: Option<u16>,
    /// Selectable fields for which an index is kept, so that lists and counts by them are fast.
    pub indexes: Vec<CompactString>,
}

/// The reason why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data directory cannot be used.
    #[error("data directory {directory}")]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Another process uses the data directory.
    #[error("data directory {directory} is in use by another process")]
    Locked {
        /// The directory.
        directory: PathBuf,
    },
    /// The identity of this replica cannot be written.
    #[error("the identity of this replica cannot be written")]
    Identity(#[source] std::io::Error),
    /// There is a write-ahead log, but no identity file, which is written before the log is created.
    #[error(
        "{path}, which names the owner of the write-ahead log, is missing; restore the data directory from a backup, or \
         start a replica of several with an empty one and join it again"
    )]
    Unidentified {
        /// The file.
        path: PathBuf,
    },
    /// The data directory holds an unfinished store.
    #[error(
        "data directory {directory} is not complete, because flotilla import or restore was interrupted: repeat that \
         command, or remove the directory"
    )]
    Unfinished {
        /// The directory.
        directory: PathBuf,
    },
    /// The shards that the options ask for are not possible.
    #[error(transparent)]
    Shards(#[from] ShardMapError),
    /// The peer address cannot be listened on.
    #[error("cannot listen for other replicas on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// The write-ahead log or a snapshot cannot be read.
    #[error(transparent)]
    Storage(#[from] WalError),
    /// A group cannot be started.
    #[error("group {group}")]
    Group {
        /// The group.
        group: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The thread of the store ended while the store was being opened.
    #[error("the store ended while it was being opened")]
    Ended,
}
