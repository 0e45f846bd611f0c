//! How a store is opened.

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
    /// Memory that the history of one table may keep, in bytes; the oldest goes first, except while a snapshot that
    /// is not older than `snapshot_hold_max` needs it.
    pub history_bytes_max: usize,
    /// How long a snapshot keeps its revision readable.
    pub snapshot_hold_max: Duration,
    /// Bytes that are appended to the log of a group before a snapshot of it is written, unless its objects take more.
    pub snapshot_log_bytes: u64,
    /// Size of a segment of the write-ahead log, in bytes. The directory must always have room for two. Several times
    /// what is written together: of what has no room in one, nothing is written.
    pub wal_segment_bytes: u64,
    /// Whether writes are acknowledged before they are on the disk: they are lost when the machine fails.
    pub unsafe_no_fsync: bool,
    /// Who replicates the store together; `None` for a store of one replica, which listens for no others.
    pub membership: Option<Membership>,
    /// What a store without a membership calls itself, so that others can be admitted when it has one; `None` for one
    /// that stays alone.
    pub founder: Option<Founder>,
    /// Whether this store is what is left of one whose other replicas are gone for good: it goes on as the only one,
    /// under the name that it had. See [`crate::salvage`].
    pub is_survivor: bool,
    /// A new store hands out only revisions above this one.
    pub above: Revision,
    /// How many data groups there are, besides the group `default`: `g1` and so on. Tables that ask for shards are
    /// spread over them. Cannot be changed later, and neither can the shards of tables.
    pub groups: u8,
    /// What differs from the default, by table.
    pub tables: BTreeMap<TableId, TableOptions>,
    /// Makes what the store's thread runs beside its work, for whoever wants to know that it comes back.
    pub beside: Option<Beside>,
    /// Called with the reason when the store cannot go on: its log can no longer be trusted to be durable, after a
    /// failed write or fsync of it, or it has lost what it acknowledged. It must end the process; the store answers
    /// nothing any more.
    pub on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Options {
    /// The defaults for a data directory.
    pub fn new(directory: impl Into<PathBuf>) -> Options {
        Options {
            directory: directory.into(),
            history_age_max: Duration::from_secs(300),
            history_bytes_max: 1 << 30,
            snapshot_hold_max: Duration::from_secs(120),
            snapshot_log_bytes: limits::SNAPSHOT_LOG_BYTES,
            wal_segment_bytes: limits::WAL_SEGMENT_BYTES,
            unsafe_no_fsync: false,
            membership: None,
            founder: None,
            is_survivor: false,
            above: Revision::ZERO,
            groups: 0,
            tables: BTreeMap::new(),
            beside: None,
            on_fatal: Arc::new(|reason| {
                tracing::error!(reason, "the store cannot go on: ending the process");
                std::process::exit(70);
            }),
        }
    }
}

/// Makes a task.
pub type Beside = Arc<dyn Fn() -> LocalBoxFuture<'static, ()> + Send + Sync>;

/// The replicas of a store.
#[derive(Clone, Debug)]
pub struct Membership {
    /// Name of this one; unique among them.
    pub name: String,
    /// Where it listens for the others.
    pub peer_listen: SocketAddr,
    /// Where the others reach it, `HOST:PORT`: told to those that do not know it from [`Initial::Members`].
    pub advertise: String,
    /// The address at which clients reach this one, for [`crate::Store::servers`] of the others; may be empty.
    pub serves: String,
    /// Who forms the store.
    pub initial: Initial,
    /// How connections between them are made and taken.
    pub tls: PeerTls,
}

/// The members that form a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Initial {
    /// Where each listens, `HOST:PORT` by name, this one among them.
    Members(BTreeMap<String, String>),
    /// Whoever answers at the addresses of a host name; it is resolved until as many do.
    Found {
        /// The host name, and the port on which all of them listen: `HOST:PORT`.
        address: String,
        /// How many form the store.
        size: usize,
    },
}

/// The first member of a cluster that others are to join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Founder {
    /// Its name.
    pub name: String,
    /// Where others will reach it, `HOST:PORT`.
    pub address: String,
}

/// How connections between replicas are made and taken. Each side must know the other by its certificate; the name
/// in it is [`PeerTls::SERVER_NAME`].
#[derive(Clone)]
pub struct PeerTls {
    /// For connections to others.
    pub client: Arc<rustls::ClientConfig>,
    /// For connections from others. It must demand a certificate.
    pub server: Arc<rustls::ServerConfig>,
    /// The name of the member that a certificate was made for. A replica that calls itself otherwise is refused.
    pub name_of: fn(&CertificateDer<'_>) -> Option<String>,
}

impl PeerTls {
    /// The name that every replica has in its certificate.
    pub const SERVER_NAME: &str = "flotilla-peer";

    /// The name of the member that showed these certificates.
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
    /// How many shards it has, spread over the data groups; when not said, one shard in the group `default`.
    pub shards: Option<u16>,
    /// Selectable fields that lists and counts find by an index.
    pub indexes: Vec<CompactString>,
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data directory cannot be used.
    #[error("data directory {directory}")]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
    /// Another process uses the data directory.
    #[error("data directory {directory} is in use by another process")]
    Locked {
        /// The directory.
        directory: PathBuf,
    },
    /// Who this replica is cannot be written down.
    #[error("the identity of this replica cannot be written")]
    Identity(#[source] std::io::Error),
    /// There is a log, and not what says whose it is, which is written before the log is made.
    #[error(
        "{path} is missing, which says whose write-ahead log this is; restore the data directory from a backup, or start \
         a replica of several with an empty one and join it again"
    )]
    Unidentified {
        /// The file.
        path: PathBuf,
    },
    /// The data directory holds a part of what it is going to hold.
    #[error(
        "data directory {directory} is not complete: give the command again that made it (flotilla import or restore), \
         which was interrupted, or remove it"
    )]
    Unfinished {
        /// The directory.
        directory: PathBuf,
    },
    /// Tables cannot be kept in shards as asked.
    #[error(transparent)]
    Shards(#[from] ShardMapError),
    /// Other replicas cannot be listened for.
    #[error("cannot listen for other replicas on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
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
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The thread of the store ended while opening.
    #[error("the store ended while it was being opened")]
    Ended,
}
