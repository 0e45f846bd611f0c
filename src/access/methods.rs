//! The methods of authentication that flags add.

use std::sync::Arc;

use super::anonymous::Anonymous;
use super::bootstrap_tokens::BootstrapTokens;
use super::front_proxy::FrontProxy;
use super::openid::Issuers;
use super::webhook::TokenWebhook;

/// The methods of authentication besides client certificates, static tokens and tokens of service accounts.
#[derive(Debug)]
pub struct AuthenticationMethods {
    /// The requests that are allowed without credentials.
    pub anonymous: Anonymous,
    /// Tokens with which nodes join.
    pub bootstrap: Option<BootstrapTokens>,
    /// Front proxies that may name the user.
    pub proxy: Option<Arc<FrontProxy>>,
    /// The OpenID Connect providers whose tokens are accepted.
    pub issuers: Arc<Issuers>,
    /// The webhook that is asked about a token if nothing else knows it.
    pub webhook: Option<TokenWebhook>,
}

impl Default for AuthenticationMethods {
    fn default() -> Self {
        let anonymous = Anonymous::Everywhere;
        Self { anonymous, bootstrap: None, proxy: None, issuers: Arc::default(), webhook: None }
    }
}
