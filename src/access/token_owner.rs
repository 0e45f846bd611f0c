//! The owner of a valid token.

use std::sync::Arc;

use super::user::User;

/// The owner of a valid token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenOwner {
    /// The user.
    pub user: Arc<User>,
    /// The requested audiences for which the token is issued.
    pub audiences: Vec<String>,
    /// A text for a `Warning` header.
    pub warning: Option<&'static str>,
}
