//! The commands `flotilla import` and `flotilla export`.
//!
//! An import creates the data directory of a new cluster ([`Import`]). It reads the values that kube-apiserver stores
//! in etcd ([`stored`], [`key_meaning`]), or the objects of a running API server ([`live`]), whose changes it follows
//! ([`following`]). An export writes the objects of a cluster as kube-apiserver stores them in etcd, or as YAML
//! ([`Export`]). Objects keep their UIDs, times, owners and generations. Objects that cannot be imported are never
//! dropped silently: they are counted, reported, and written to the aside file ([`aside`]).

mod aside;
mod definitions;
mod export;
mod following;
mod import;
mod input;
mod journal;
mod key_meaning;
mod live;
mod older;
mod orders;
mod report;
mod spool;
mod stored;
mod watching;
mod yaml_files;

pub use export::{Export, ExportError};
pub use import::{Import, ImportError};
