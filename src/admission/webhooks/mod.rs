//! Webhooks that are asked about writes (AdmissionReview), mutating and validating.
//!
//! [`Webhooks`] is the plugin: it follows the configurations, finds those that a write concerns ([`Listed`]) and asks
//! them. [`Webhook`] is what a configuration says of one, [`Asked`] what it is asked about. [`Webhook::call`] asks it,
//! and judges its [`Verdict`]; [`patched`] makes the object that a mutating one wants.

mod asking;
mod call;
mod listed;
mod patch;
mod plugin;
mod review;
mod verdict;
mod webhook;

pub use call::{Answer, Failure};
pub use listed::Listed;
pub use patch::patched;
pub use plugin::Webhooks;
pub use review::{Asked, user_info};
pub use verdict::Verdict;
pub use webhook::Webhook;
