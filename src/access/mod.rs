//! Authenticates requests and authorizes them.
//!
//! The client certificate of a connection is judged once, when the connection opens ([`connection`]). A request may add
//! a bearer token ([`Authenticator`]). The [`Authorizer`] then decides what that user may do, by [`rbac`] and by
//! [`nodes`].

mod attributes;
mod authenticator;
mod authorizer;
mod bearer;
mod bootstrap_tokens;
pub mod configured;
pub mod connection;
mod decision;
mod front_proxy;
mod impersonation;
mod inquiry;
pub mod nodes;
mod openid;
pub mod rbac;
pub mod review;
mod token_file;
pub mod tokens;
mod user;
mod webhook;

pub use attributes::{Attributes, ResourceAttributes, forbidden};
pub use authenticator::{Anonymous, Authenticated, AuthenticationMethods, Authenticator, Refused, Retry, TokenOwner};
pub use authorizer::{Authorizer, Chain, Permissions, Step};
pub use bootstrap_tokens::BootstrapTokens;
pub use connection::ConnectionIdentity;
pub use decision::{Decision, Verdict};
pub use front_proxy::{FrontProxy, TrustedProxy, says_who_asks};
pub use impersonation::Impersonation;
pub use inquiry::Inquiry;
pub use openid::{Issuers, OpenId};
pub use token_file::{TokenFile, TokenFileError};
pub use user::{Extra, User};
pub use webhook::{AccessWebhook, AccessWebhookSettings, TokenWebhook, WebhookError};

/// The beginning of the name of the cookie that identifies a browser to the console. The port follows, because browsers
/// share the cookies of a host among its ports. With the prefix `__Host-` a browser accepts it only over TLS, from this
/// host, and for all paths (RFC 6265bis, section 4.1.3.2).
pub const CONSOLE_COOKIE: &str = "__Host-flotilla-console-";
