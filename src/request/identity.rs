//! The identity of the client of a request.

use std::sync::Arc;

use crate::access::User;

/// The identity behind a request. It never changes: impersonation replaces it as a whole.
#[derive(Debug, Clone)]
pub struct Identity {
    user: Arc<User>,
    user_agent: String,
    is_server: bool,
}

impl Identity {
    /// Returns the identity of a user, whose client calls itself `user_agent`.
    pub fn new(user: Arc<User>, user_agent: &str) -> Self {
        Self { user, user_agent: user_agent.to_owned(), is_server: false }
    }

    /// Returns the identity under which the server writes. Its user agent is `manager`, the name of the writing part.
    pub fn of_api_server(manager: &str) -> Self {
        let groups = vec!["system:masters".into(), "system:authenticated".into()];
        Self::new(Arc::new(User { name: "system:apiserver".into(), groups, ..User::default() }), manager)
    }

    /// Returns the identity marked as that of the server itself, which writes its own objects. Policies and webhooks do
    /// not see these writes.
    #[must_use]
    pub fn into_server(self) -> Self {
        Self { is_server: true, ..self }
    }

    /// Returns the identity with another user, whom the client impersonates.
    #[must_use]
    pub fn acting_as(&self, user: Arc<User>) -> Self {
        Self { user, user_agent: self.user_agent.clone(), is_server: self.is_server }
    }

    /// Returns the user.
    pub const fn user(&self) -> &Arc<User> {
        &self.user
    }

    /// Returns the header `User-Agent`.
    pub fn user_agent(&self) -> &str {
        &self.user_agent
    }

    /// Returns whether the server itself writes one of its own objects.
    pub const fn is_server(&self) -> bool {
        self.is_server
    }
}
