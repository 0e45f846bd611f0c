//! From credentials to a user.

use std::sync::Arc;
use std::time::SystemTime;

use super::bearer::{Bearer, EXTRA_SPACE};
use super::connection::ConnectionIdentity;
use super::token_file::TokenFile;
use super::user::User;
use crate::limits::TOKEN_BYTES;
use crate::status::ApiError;

/// Who asks.
#[derive(Debug, Clone)]
pub struct Authenticated {
    /// The user; anonymous when there were no credentials.
    pub user: Arc<User>,
    /// What to tell the client in a `Warning` header.
    pub warning: Option<&'static str>,
}

/// Finds the user of a request.
///
/// In order: a trusted client certificate wins over everything; then a bearer token counts, and one that is not known
/// is an error even where anonymous requests are welcome; an untrusted client certificate is an error as well;
/// without credentials the request is anonymous.
#[derive(Debug)]
pub struct Authenticator {
    anonymous: Arc<User>,
    file: TokenFile,
}

impl Authenticator {
    /// Knows these static tokens.
    pub fn new(file: TokenFile) -> Self {
        Self { anonymous: Arc::new(User::anonymous()), file }
    }

    /// The user of a request on a connection, with the value of its header `Authorization`.
    ///
    /// # Errors
    /// 401 when there are credentials, but none that is valid.
    pub fn authenticate(
        &self,
        connection: &ConnectionIdentity,
        authorization: Option<&[u8]>,
    ) -> Result<Authenticated, ApiError> {
        let found = |user: &Arc<User>| Ok(Authenticated { user: Arc::clone(user), warning: None });
        if let Some(user) = connection.user(SystemTime::now()) {
            return found(user);
        }
        let bearer = authorization.map_or(Bearer::None, Bearer::parse);
        if let Bearer::Token(token) = bearer {
            return match self.token(token) {
                Some(user) => found(&user),
                None => Err(unauthorized()),
            };
        }
        match connection {
            ConnectionIdentity::None => {
                let warning = (bearer == Bearer::Misplaced).then_some(EXTRA_SPACE);
                Ok(Authenticated { user: Arc::clone(&self.anonymous), warning })
            }
            ConnectionIdentity::User { .. } | ConnectionIdentity::Refused => Err(unauthorized()),
        }
    }

    fn token(&self, token: &[u8]) -> Option<Arc<User>> {
        if token.len() > TOKEN_BYTES {
            return None;
        }
        self.file.user(token).cloned()
    }
}

/// 401: there are credentials, but none that is valid.
pub fn unauthorized() -> ApiError {
    ApiError::new(401, "Unauthorized", "Unauthorized")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn certificate(seconds_left: i64) -> ConnectionIdentity {
        let now = SystemTime::now();
        let left = Duration::from_secs(seconds_left.unsigned_abs());
        let not_after = if seconds_left < 0 { now - left } else { now + left };
        ConnectionIdentity::User { user: Arc::new(User { name: "cert".into(), ..User::default() }), not_after }
    }

    #[test]
    fn order() {
        let authenticator = Authenticator::new(TokenFile::default());
        let name = |connection: &ConnectionIdentity, header: Option<&str>| {
            authenticator.authenticate(connection, header.map(str::as_bytes)).map(|found| found.user.name.to_string())
        };
        let (valid, expired) = (certificate(60), certificate(-60));
        assert_eq!(name(&valid, Some("Bearer bad")).unwrap(), "cert");
        assert_eq!(name(&expired, None).unwrap_err().code, 401);
        assert_eq!(name(&ConnectionIdentity::Refused, None).unwrap_err().code, 401);
        let none = ConnectionIdentity::None;
        assert_eq!(name(&none, Some("Bearer bad")).unwrap_err().code, 401);
        assert_eq!(name(&none, Some("Basic YQ==")).unwrap(), "system:anonymous");
        assert_eq!(name(&none, None).unwrap(), "system:anonymous");
        assert!(authenticator.authenticate(&none, Some(b"Bearer  x")).unwrap().warning.is_some());
    }
}
