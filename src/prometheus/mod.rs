//! Counters, gauges and distributions, and the text in which Prometheus reads them.
//!
//! Every family is named once, in [`families`].

mod exposition;
pub mod families;
mod histogram;
mod meter;

pub use exposition::{CONTENT_TYPE, Page, Samples, read_labels, sorted};
pub use histogram::{Family, Histogram, Unit};
pub use meter::{Labels, Meter};
