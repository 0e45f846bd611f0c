//! Who makes a request, and what is to be told besides the answer.

use std::sync::Arc;
use std::time::Instant;

use flotilla_cluster::Tenure;

use crate::access::{Attributes, Authorizer, Impersonation, User};
use crate::status::ApiResult;

/// The client of a request.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The user.
    pub user: Arc<User>,
    /// Header `User-Agent`.
    pub user_agent: String,
    /// Whom the client wants to act for.
    pub impersonation: Option<Impersonation>,
    /// The verb of the request, as authorization calls it.
    pub verb: &'static str,
    /// Texts for `Warning` headers, in order.
    pub warnings: Vec<String>,
    /// What the audit log is to have of the request: keys and values.
    pub annotations: Vec<(String, String)>,
    /// When the request is given up.
    pub ends: Option<Instant>,
    /// Whether the server itself writes what it cannot do without: nobody outside is asked about that.
    pub is_server: bool,
    /// Whether what is known here may be older than what the client was told elsewhere: see
    /// [`crate::registry::Registry::stands`].
    pub behind: bool,
    /// By what the request is decided, where that is known to be current once a write is made.
    pub tenure: Option<Tenure>,
    /// The quotas, by UID, that were charged by an attempt in a tenure: when that made nothing, the next one finds the
    /// object charged already.
    pub charged: Vec<String>,
}

impl Caller {
    /// A caller with nothing to be told yet.
    pub fn new(user: Arc<User>, user_agent: &str) -> Self {
        let user_agent = user_agent.to_owned();
        Self {
            user,
            user_agent,
            impersonation: None,
            verb: "",
            warnings: Vec::new(),
            annotations: Vec::new(),
            ends: None,
            is_server: false,
            behind: false,
            tenure: None,
            charged: Vec::new(),
        }
    }

    /// The server itself, as the author of what it cannot do without.
    pub fn server(manager: &str) -> Self {
        let groups = vec!["system:masters".into(), "system:authenticated".into()];
        let user = User { name: "system:apiserver".into(), groups, ..User::default() };
        Self { is_server: true, ..Self::new(Arc::new(user), manager) }
    }

    /// Lets a request pass or not. Whoever acts for somebody else must be allowed to do so, and is that user from then
    /// on.
    ///
    /// # Errors
    /// 403 when the user may not.
    pub fn authorize(&mut self, authorizer: &Authorizer, attributes: &Attributes<'_>) -> ApiResult<()> {
        if let Some(impersonation) = self.impersonation.take() {
            self.user = Arc::new(impersonation.authorize(authorizer, &self.user, attributes)?);
        }
        authorizer.authorize(&self.user, attributes)
    }
}
