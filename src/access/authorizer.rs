//! Whether a user may do something.

use std::sync::Arc;

use super::attributes::{Attributes, forbidden};
use super::user::{AUTHENTICATED, UNAUTHENTICATED, User};
use crate::pki::MASTERS;
use crate::status::ApiError;

/// Paths about the server's health and version, open to everybody.
const PUBLIC_PATHS: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// An answer of authorization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The user may; the reason is for reviews and the audit log, and may be empty.
    Allow(String),
    /// No rule says that the user may; the reason ends the message of the refusal, and may be empty.
    NoOpinion(String),
}

impl Decision {
    /// Whether the user may.
    pub const fn is_allowed(&self) -> bool {
        matches!(self, Self::Allow(_))
    }
}

/// Rules that let users do things: role based access control, for one.
pub trait Rules: std::fmt::Debug + Send + Sync {
    /// What the rules say.
    fn decide(&self, user: &User, attributes: &Attributes<'_>) -> Decision;
}

/// Decides who may do what: `system:masters` everything, everybody the paths about health and version, and for the
/// rest the rules that it was given.
#[derive(Debug, Clone, Default)]
pub struct Authorizer {
    rules: Option<Arc<dyn Rules>>,
}

impl Authorizer {
    /// Without rules beyond the built-in ones.
    pub const fn new() -> Self {
        Self { rules: None }
    }

    /// With rules that are asked after the built-in ones.
    pub const fn with_rules(rules: Arc<dyn Rules>) -> Self {
        Self { rules: Some(rules) }
    }

    /// Whether the user may.
    pub fn decide(&self, user: &User, attributes: &Attributes<'_>) -> Decision {
        if user.is_member(MASTERS) {
            return Decision::Allow(String::new());
        }
        match attributes {
            Attributes::Path { verb: "get", path }
                if PUBLIC_PATHS.contains(path)
                    && (user.is_member(UNAUTHENTICATED) || user.is_member(AUTHENTICATED)) =>
            {
                Decision::Allow(String::new())
            }
            _ => match &self.rules {
                Some(rules) => rules.decide(user, attributes),
                None => Decision::NoOpinion(String::new()),
            },
        }
    }

    /// Lets the request pass or not.
    ///
    /// # Errors
    /// 403 when the user may not.
    pub fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        match self.decide(user, attributes) {
            Decision::Allow(_) => Ok(()),
            Decision::NoOpinion(reason) => Err(forbidden(user, attributes, &reason)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masters_and_health() {
        let authorizer = Authorizer::new();
        let anonymous = User::anonymous();
        let get = |path| Attributes::Path { verb: "get", path };
        for path in PUBLIC_PATHS {
            assert_eq!(authorizer.authorize(&anonymous, &get(path)), Ok(()), "{path}");
            assert!(authorizer.authorize(&anonymous, &Attributes::Path { verb: "post", path }).is_err());
        }
        for path in ["/", "/api", "/livez/ping", "/livez/", "/metrics"] {
            assert_eq!(authorizer.authorize(&anonymous, &get(path)).unwrap_err().code, 403, "{path}");
        }
        let master = User { groups: vec![MASTERS.into()], ..User::default() };
        assert_eq!(authorizer.authorize(&master, &get("/metrics")), Ok(()));
    }
}
