//! Calls mutating and validating webhooks about writes (AdmissionReview).
//!
//! [`Webhooks`] is the plugin: it follows the configurations, finds the webhooks that match a write
//! ([`RegisteredWebhook`]) and calls them. [`Webhook`] is the entry of a configuration for one webhook,
//! [`ReviewRequest`] is the request that the webhook receives. [`Webhook::call`] sends the request and acts on the
//! [`ReviewResponse`] in the answer; [`patched`] applies the patch of a mutating webhook.

mod asking;
mod call;
mod patch;
mod plugin;
mod registered;
mod review;
mod review_response;
mod webhook;

pub use call::{Failure, WebhookOutcome};
pub use patch::patched;
pub use plugin::{MUTATING, VALIDATING, Webhooks};
pub use registered::RegisteredWebhook;
pub use review::{ReviewRequest, user_info};
pub use review_response::ReviewResponse;
pub use webhook::Webhook;
