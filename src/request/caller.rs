//! The client of a request, and the parts of its answer besides the result.

use std::sync::Arc;
use std::time::Instant;

use super::{Basis, Identity, Notices, Record};
use crate::access::{Attributes, Authorizer, Impersonation, Inquiry, User, forbidden};
use crate::status::{ApiError, ApiResult};

/// The client of a request, and the request's state.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The identity of the client.
    pub identity: Identity,
    /// The user for whom the client wants to act. `None` if it acts for itself.
    pub impersonation: Option<Impersonation>,
    /// The verb of the request, as authorization calls it.
    pub verb: &'static str,
    /// Warnings for the client, and audit annotations.
    pub notices: Notices,
    /// The findings for the audit log. `None` if the request is not recorded.
    pub record: Option<Box<Record>>,
    /// The time at which the request times out. `None` if it does not time out.
    pub ends: Option<Instant>,
    /// The basis of the decisions about the request.
    pub basis: Basis,
    /// The questions to webhooks about the request, and their answers.
    pub inquiry: Inquiry,
}

/// The reasons why a user may not make a request.
#[derive(Debug)]
pub enum Unauthorized {
    /// No authorizer allows it.
    Refused(ApiError),
    /// An authorizer could not decide, and the others do not allow it. Holds the error.
    Undecided(String),
}

impl Caller {
    /// Creates a caller without warnings.
    pub fn new(user: Arc<User>, user_agent: &str) -> Self {
        Self::of(Identity::new(user, user_agent))
    }

    /// Creates a caller without warnings.
    pub fn of(identity: Identity) -> Self {
        Self {
            identity,
            impersonation: None,
            verb: "",
            notices: Notices::default(),
            record: None,
            ends: None,
            basis: Basis::Current,
            inquiry: Inquiry::default(),
        }
    }

    /// Returns the server itself, as the author of its own objects.
    pub fn server(manager: &str) -> Self {
        Self::of(Identity::of_api_server(manager).into_server())
    }

    /// Replaces the user of a client that impersonates another user by that other user. If a webhook must be asked
    /// first, leaves the question in the inquiry and changes nothing.
    ///
    /// # Errors
    /// 403 when the user may not impersonate the other user.
    pub fn impersonate(&mut self, authorizer: &Authorizer, attributes: &Attributes<'_>) -> ApiResult<()> {
        if let Some(impersonation) = self.impersonation.take() {
            let allowed = impersonation.authorize(authorizer, self.identity.user(), attributes, &self.inquiry);
            if self.inquiry.is_open() {
                self.impersonation = Some(impersonation);
                return Ok(());
            }
            let (user, permission) = allowed?;
            let user = Arc::new(user);
            self.identity = self.identity.acting_as(Arc::clone(&user));
            if let Some(record) = &mut self.record {
                record.impersonated = Some((user, permission));
            }
        }
        Ok(())
    }

    /// Authorizes a request of the user. If a webhook must be asked first, leaves the question in the inquiry. The
    /// result then means nothing.
    ///
    /// # Errors
    /// The user may not make the request.
    pub fn authorize(&mut self, authorizer: &Authorizer, attributes: &Attributes<'_>) -> Result<(), Unauthorized> {
        if self.record.is_none() && authorizer.allows_at_once(self.identity.user(), attributes) {
            return Ok(());
        }
        let decision = authorizer.decide(self.identity.user(), attributes, &self.inquiry);
        let is_decided = decision.is_allowed() || decision.error.is_empty();
        if let Some(record) = &mut self.record {
            record.decision = is_decided.then(|| (decision.is_allowed(), decision.reason.clone()));
            if !is_decided {
                self.notices.annotations.push(("authorization.k8s.io/reason".to_owned(), "internal error".to_owned()));
            }
        }
        match decision.is_allowed() {
            true => Ok(()),
            false if is_decided => {
                Err(Unauthorized::Refused(forbidden(self.identity.user(), attributes, &decision.reason)))
            }
            false => Err(Unauthorized::Undecided(decision.error)),
        }
    }
}
