//! Reads static tokens from a file in the format of kube-apiserver's `--token-auth-file`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use ring::digest::{SHA256, digest};

use super::user::User;
use crate::pki::{PkiError, read_credential};

/// Users by the digest of their token: the time of a lookup reveals nothing about tokens.
#[derive(Debug, Default)]
pub struct TokenFile(HashMap<[u8; 32], Arc<User>>);

/// The reason why a token file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] PkiError),
    /// A line is invalid.
    #[error("{path}, line {line}: {why}")]
    Line {
        /// The file.
        path: String,
        /// Number of the line, from 1.
        line: usize,
        /// The mistake.
        why: &'static str,
    },
}

impl TokenFile {
    /// Reads `token,user,uid[,"group,group"]` line by line. Skips empty lines, lines that start with `#`, and, with a
    /// warning in the log, lines without a token.
    ///
    /// # Errors
    /// The file cannot be read, or a line has fewer than three columns or unbalanced quotes.
    pub fn open(path: &Path) -> Result<Self, TokenFileError> {
        let text = read_credential(path)?;
        Self::parse(&text).map_err(|(line, why)| TokenFileError::Line { path: path.display().to_string(), line, why })
    }

    pub(super) fn parse(text: &str) -> Result<Self, (usize, &'static str)> {
        let mut users = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let columns = columns(line).ok_or((number + 1, "unbalanced quotes"))?;
            let [token, name, uid, ..] = &columns[..] else {
                return Err((number + 1, "needs at least three columns: token, user, uid"));
            };
            if token.is_empty() {
                tracing::warn!(line = number + 1, "empty token in the token file skipped");
                continue;
            }
            let groups = columns.get(3).map_or("", |groups| groups).split(',').map(str::trim);
            let groups = groups.filter(|group| !group.is_empty()).map(Into::into).collect();
            let user = User { name: name.into(), uid: uid.into(), groups, ..User::default() };
            if users.insert(key(token.as_bytes()), Arc::new(user.authenticated())).is_some() {
                tracing::warn!(line = number + 1, "duplicate token in the token file: the later line wins");
            }
        }
        Ok(Self(users))
    }

    /// Returns the user of a token with this SHA-256 digest. `None` if there is none.
    pub fn user(&self, key: &[u8; 32]) -> Option<&Arc<User>> {
        self.0.get(key)
    }
}

fn key(token: &[u8]) -> [u8; 32] {
    let mut key = [0; 32];
    key.copy_from_slice(digest(&SHA256, token).as_ref());
    key
}

/// Splits a line into columns (RFC 4180): quoted columns may contain commas, and two quotes stand for one. `None` if
/// quotes are unbalanced.
fn columns(line: &str) -> Option<Vec<String>> {
    let mut columns = vec![];
    let mut rest = line;
    loop {
        rest = rest.trim_start();
        let mut column = String::new();
        if let Some(quoted) = rest.strip_prefix('"') {
            rest = quoted;
            loop {
                let end = rest.find('"')?;
                column.push_str(&rest[..end]);
                rest = &rest[end + 1..];
                match rest.strip_prefix('"') {
                    Some(more) => {
                        column.push('"');
                        rest = more;
                    }
                    None => break,
                }
            }
            rest = rest.trim_start();
            if !rest.is_empty() && !rest.starts_with(',') {
                return None;
            }
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            column.push_str(rest[..end].trim_end());
            rest = &rest[end..];
        }
        columns.push(column);
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Some(columns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_gives_a_token_its_user() {
        let file =
            TokenFile::parse("# who\n\na1,ann,u-1\nb2,bob,u-2,\"dev, ops\"\n\"c\"\"3\",cy,,one\n,nobody,x\n").unwrap();
        let ann = file.user(&key(b"a1")).unwrap();
        assert_eq!((ann.name.as_str(), ann.uid.as_str()), ("ann", "u-1"));
        assert_eq!(ann.groups, ["system:authenticated"]);
        assert_eq!(file.user(&key(b"b2")).unwrap().groups, ["dev", "ops", "system:authenticated"]);
        assert_eq!(file.user(&key(b"c\"3")).unwrap().groups, ["one", "system:authenticated"]);
        assert!(file.user(&key(b"")).is_none() && file.user(&key(b"zz")).is_none());
    }

    #[test]
    fn a_malformed_line_is_refused_with_its_number() {
        assert_eq!(TokenFile::parse("a,b").unwrap_err().0, 1);
        assert_eq!(TokenFile::parse("a,b,c\nd,\"e,f").unwrap_err().0, 2);
        assert_eq!(TokenFile::parse("a,\"b\"c,d").unwrap_err().0, 1);
    }
}
