//! Counters, gauges and histograms, and the text in which Prometheus reads them.
//!
//! [`families`] has the name of every family.

mod exposition;
pub mod families;
mod histogram;
mod meter;

pub use exposition::{CONTENT_TYPE, Page, Samples, read_labels, sorted};
pub use histogram::{Family, Histogram, Unit};
pub use meter::{Labels, Meter, Raised};
