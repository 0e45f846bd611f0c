//! Who makes a request, and what is to be told besides the answer.

use std::sync::Arc;

use crate::access::User;

/// The client of a request.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The user.
    pub user: Arc<User>,
    /// Header `User-Agent`.
    pub user_agent: String,
    /// Texts for `Warning` headers, in order.
    pub warnings: Vec<String>,
}

impl Caller {
    /// A caller with nothing to be told yet.
    pub fn new(user: Arc<User>, user_agent: &str) -> Self {
        Self { user, user_agent: user_agent.to_owned(), warnings: Vec::new() }
    }
}
