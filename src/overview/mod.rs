//! How a member and its cluster are, for people: `flotilla status` and `flotilla doctor`.
//!
//! Everything is put together by whoever asks, out of what a member tells anyway (`/metrics`, `/readyz` and its view
//! of the cluster), so that a server pays nothing while nobody looks.

mod doctor;
mod requests;
mod samples;
mod status;

pub use doctor::Doctor;
pub use status::{Status, StatusError};
