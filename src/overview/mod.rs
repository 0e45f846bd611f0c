//! How a member and its cluster are, for people: what a member tells at [`OVERVIEW_PATH`], and the commands that show
//! it, `flotilla status`, `flotilla top` and `flotilla doctor`.
//!
//! A member puts it together when somebody asks, out of what it counts anyway, so that it pays nothing while nobody
//! looks.

mod asking;
mod doctor;
#[cfg(test)]
#[path = "example_tests.rs"]
mod example;
mod rates;
mod requests;
mod status;
mod top;
mod view;
mod warnings;

pub use asking::{Looked, StatusError};
pub use doctor::{Doctor, Finding, Verdict, judge};
pub use rates::{Rate, Rates, ResourceRate};
pub use requests::{Requests, bounds, by_type};
pub use status::Status;
pub use top::Top;
pub use view::{
    Certificate, Disk, History, Lag, Log, OVERVIEW_PATH, Overview, ResourceView, WatchLag, events, resource_name,
};
pub use warnings::{Recorder, Warning, recent};

#[cfg(test)]
pub(crate) use example::example;
