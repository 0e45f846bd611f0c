//! Administration of a cluster from the command line: the commands, the client and the messages that they use, and the
//! form of their output.

mod client;
mod commands;
mod kubeconfig;
pub mod messages;
mod shared_keys;
mod shown;

pub use client::{Client, ClientError};
pub use commands::{Cluster, CommandError};
pub use kubeconfig::Kubeconfig;
pub use shared_keys::{SharedKeys, SharedKeysError};
pub use shown::{cluster as cluster_tables, table};
