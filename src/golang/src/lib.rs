//! How Go's standard library reads and writes text, where clients of Kubernetes see it.
//!
//! Definitions, expressions and webhooks hold text that the reference hands to Go's own parsers, and its refusals show
//! their words. Read [`regexp`] for patterns, [`url`] for addresses of servers, [`netip`] for addresses of hosts,
//! [`strconv`] for numbers and quoted text. Nothing here knows of Kubernetes, of requests or of storage.

pub mod limits;
pub mod netip;
pub mod regexp;
pub mod strconv;
pub mod url;
