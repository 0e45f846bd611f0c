//! Tokens of service accounts: JSON Web Tokens (RFC 7519) that this server signs and verifies.
//!
//! A token is verified once and then cached by its digest. The objects that it is bound to (service account, pod,
//! secret, node) are looked up at every request, so that tokens of a deleted account are refused at once.

mod bound;
mod claims;
pub mod discovery;
mod issue;
mod jose;
mod keys;
mod legacy;
pub mod request;
mod store;
mod uses;
mod verify;

pub use bound::{BoundKind, BoundObjects, BoundProperties};
pub use claims::{Claims, NumericDate};
pub use discovery::{CACHE_CONTROL, CONFIGURATION_PATH, JWKS_MEDIA_TYPE, JWKS_PATH, configuration, jwks_uri};
pub use issue::{Account, IssueRequest, Issued, Issuer, LegacyAccount};
pub use jose::Unverified;
pub use keys::{KEY_FILE, KeyError, KeySet, SigningKey, SpareKey, VerificationKey};
pub use legacy::{INVALID_SINCE, LAST_USED, SECONDS_PER_DAY, day_of};
pub use store::StoreObjects;
pub use uses::{LegacyUses, Use};
pub use verify::{ServiceAccountTokens, TokenError, Verified};

/// Prefix of the user names of service accounts.
pub const USER_PREFIX: &str = "system:serviceaccount:";
/// Group of all service accounts. With `:` and a namespace appended, the group of the accounts of that namespace.
pub const GROUP: &str = "system:serviceaccounts";
/// Issuer of tokens in Secrets.
pub const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
