//! Moving in and out: the commands `flotilla import` and `flotilla export`.
//!
//! What kube-apiserver keeps in etcd is read ([`stored`], [`encryption`], [`places`]) and becomes the data directory of
//! a new cluster ([`Import`]), and so do the objects of a running API server ([`live`]), whose changes are followed
//! meanwhile ([`following`]); what a cluster keeps is written as kube-apiserver would have it in etcd, or as YAML
//! ([`Export`]). Objects are kept as they are, with their UIDs, times, owners and generations. What cannot be taken
//! over is never dropped silently: it is counted, told, and put into a file beside ([`aside`]).

mod aside;
mod definitions;
mod encryption;
mod export;
mod following;
mod import;
mod input;
mod journal;
mod live;
mod older;
mod orders;
mod places;
mod report;
mod spool;
mod stored;
mod watching;
mod yaml_files;

pub use export::{Export, ExportError};
pub use import::{Import, ImportError};
