//! The state of a member and its cluster: the overview that the member reports at [`OVERVIEW_PATH`], and the commands
//! that show it, `flotilla status`, `flotilla top` and `flotilla doctor`.
//!
//! A member makes the overview per request, from counters that it keeps anyway. It costs nothing unless it is
//! requested.

mod doctor;
#[cfg(test)]
#[path = "example_tests.rs"]
mod example;
mod observation;
mod rates;
mod requests;
mod status;
mod top;
mod view;
mod warnings;

pub use doctor::{Doctor, Finding, FindingVerdict, assess};
pub use observation::{Observation, StatusError};
pub use rates::{Rate, Rates, ResourceRate};
pub use requests::{Requests, request_bounds, requests_by_type};
pub use status::Status;
pub use top::Top;
pub use view::{
    Certificate, Disk, History, Lag, Log, OVERVIEW_PATH, Overview, ResourceView, WatchLag, resource_name, sent_events,
};
pub use warnings::{Warning, WarningRecorder, recent_warnings};

#[cfg(test)]
pub(crate) use example::example;
