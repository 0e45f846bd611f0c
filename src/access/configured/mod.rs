//! Reads the issuers of tokens and the authorizers from flags, or from the files of `--authentication-config` and
//! `--authorization-config` (KEP-3331, KEP-3221).

mod authorizers;
mod conditions;
mod document;
mod issuers;
mod jwt;
mod reload;
mod webhooks;

pub use authorizers::{Authorizers, AuthorizersError};
pub use issuers::{Authentication, AuthenticationError};
pub use reload::FollowedFile;
