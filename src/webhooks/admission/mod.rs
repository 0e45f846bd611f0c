//! Webhooks that are asked about writes (AdmissionReview), mutating and validating.
//!
//! [`Webhook`] is what a configuration says of one, [`Asked`] what it is asked about. [`Webhook::call`] asks it, and
//! answers with what it [`Verdict`] is; [`patched`] makes the object that a mutating one wants.

mod call;
mod patch;
mod review;
mod verdict;
mod webhook;

pub use call::Failure;
pub use patch::patched;
pub use review::{Asked, user_info};
pub use verdict::Verdict;
pub use webhook::Webhook;
