//! Authenticates requests and authorizes them.
//!
//! The client certificate of a connection is verified once, when the connection opens ([`connection`]). A request may
//! carry a bearer token, which the [`Authenticator`] verifies. The [`Authorizer`] then decides whether the user may
//! make the request. It asks its authorizers in order: by default [`nodes`] and [`rbac`], otherwise those that
//! [`configured`] reads; the policies of a file ([`abac`]) and webhooks ([`webhook`]) can be among them.

mod abac;
mod anonymous;
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
mod methods;
pub mod nodes;
mod openid;
pub mod rbac;
mod refused;
pub mod review;
mod token_file;
mod token_owner;
pub mod tokens;
mod user;
mod webhook;

pub use abac::{Policies, PolicyError};
pub use anonymous::Anonymous;
pub use attributes::{Attributes, ResourceAttributes, forbidden};
pub use authenticator::{Authenticated, Authenticator};
pub use authorizer::{Authorizer, Chain, Mode, Permissions};
pub use bootstrap_tokens::BootstrapTokens;
pub use connection::ConnectionIdentity;
pub use decision::{Decision, Verdict};
pub use front_proxy::{FrontProxy, TrustedProxy, identifies_user};
pub use impersonation::Impersonation;
pub use inquiry::Inquiry;
pub use methods::AuthenticationMethods;
pub use openid::{Issuers, OpenId};
pub use refused::{Refused, Retry};
pub use token_file::{TokenFile, TokenFileError};
pub use token_owner::TokenOwner;
pub use user::{Extra, User};
pub use webhook::{AccessWebhook, AccessWebhookSettings, TokenWebhook, WebhookError};

/// The name of the cookie that identifies a browser to the console, without the port that ends it. The port is part of
/// the name because browsers share the cookies of a host among its ports. With the prefix `__Host-` a browser accepts
/// the cookie only over TLS, from this host, and for all paths (RFC 6265bis, section 4.1.3.2).
pub const CONSOLE_COOKIE: &str = "__Host-flotilla-console-";
