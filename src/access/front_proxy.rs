//! Trusts front proxies that have authenticated a user and name it in headers (Kubernetes documentation,
//! "Authenticating Proxy").

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use actix_web::http::header::HeaderMap;
use percent_encoding::percent_decode_str;
use rustls::pki_types::{CertificateDer, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::user::{Extra, User};
use crate::config::Config;
use crate::pki::{ClientRoots, PkiError, client_authorities};

/// The trusted proxies, and the headers in which they name the user. For the name and the UID the first header with a
/// value counts; for groups and extra values all headers count.
#[derive(Debug)]
pub struct FrontProxy {
    roots: ClientRoots,
    names: Vec<String>,
    username: Vec<String>,
    uid: Vec<String>,
    groups: Vec<String>,
    prefixes: Vec<String>,
}

/// Headers that identify the user in every configuration: to this server, or from it to aggregated servers.
const USUAL: [&str; 4] = ["authorization", "x-remote-user", "x-remote-uid", "x-remote-group"];
/// Prefixes of further headers of this kind.
const USUAL_PREFIXES: [&str; 2] = ["x-remote-extra-", "impersonate-"];

/// Returns whether a header identifies the user, by its usual or its configured name. Such headers are not passed on,
/// because only this server may act on them. Treats `_` and `-` as equal, because some servers turn headers into
/// variables.
pub fn identifies_user(header: &str, proxy: Option<&FrontProxy>) -> bool {
    let is_usual = USUAL.iter().any(|own| is_alike(header, own));
    is_usual
        || USUAL_PREFIXES.iter().any(|prefix| begins_alike(header, prefix))
        || proxy.is_some_and(|proxy| proxy.reads(header))
}

fn is_alike(header: &str, other: &str) -> bool {
    header.len() == other.len() && begins_alike(header, other)
}

fn begins_alike(header: &str, prefix: &str) -> bool {
    let plain = |byte: u8| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
    header.len() >= prefix.len() && header.bytes().zip(prefix.bytes()).all(|(one, other)| plain(one) == plain(other))
}

/// Marks a connection whose client is a trusted proxy, until its certificate expires.
#[derive(Debug, Clone, Copy)]
pub struct TrustedProxy(SystemTime);

impl TrustedProxy {
    /// Returns whether the certificate is still valid.
    pub fn is_valid(self, now: SystemTime) -> bool {
        now <= self.0
    }
}

impl FrontProxy {
    /// Reads the configuration. `None` if no authority is configured.
    ///
    /// # Errors
    /// The file of authorities cannot be used.
    pub fn from_config(config: &Config) -> Result<Option<Arc<Self>>, PkiError> {
        let Some(path) = &config.front_proxy.requestheader_client_ca_file else { return Ok(None) };
        let lower = |names: &[String]| {
            let names = names.iter().map(|name| name.trim().to_ascii_lowercase());
            names.filter(|name| !name.is_empty()).collect()
        };
        Ok(Some(Arc::new(Self {
            roots: ClientRoots::new(client_authorities(path)?)?,
            names: config
                .front_proxy
                .requestheader_allowed_names
                .iter()
                .filter(|name| !name.is_empty())
                .cloned()
                .collect(),
            username: lower(&config.front_proxy.requestheader_username_headers),
            uid: lower(&config.front_proxy.requestheader_uid_headers),
            groups: lower(&config.front_proxy.requestheader_group_headers),
            prefixes: lower(&config.front_proxy.requestheader_extra_headers_prefix),
        })))
    }

    /// Returns the authorities that sign certificates of proxies.
    pub const fn roots(&self) -> &ClientRoots {
        &self.roots
    }

    /// Verifies the certificate chain of a client, which begins with its own certificate. Returns `None` if the client
    /// is not a trusted proxy.
    pub fn judge(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Option<TrustedProxy> {
        let leaf = chain.first()?;
        self.roots.verify(chain, now).ok()?;
        let (_, parsed) = X509Certificate::from_der(leaf).ok()?;
        let name = parsed.subject().iter_common_name().filter_map(|name| name.as_str().ok()).last().unwrap_or("");
        if !self.names.is_empty() && !self.names.iter().any(|allowed| allowed == name) {
            tracing::debug!(name, "the name in the certificate of a front proxy is not allowed");
            return None;
        }
        let seconds = u64::try_from(parsed.validity().not_after.timestamp()).ok()?;
        Some(TrustedProxy(UNIX_EPOCH + Duration::from_secs(seconds)))
    }

    /// Returns whether a header is one that trusted proxies set.
    fn reads(&self, header: &str) -> bool {
        let mut names = self.username.iter().chain(&self.uid).chain(&self.groups);
        names.any(|own| is_alike(header, own)) || self.prefixes.iter().any(|prefix| begins_alike(header, prefix))
    }

    /// Returns the user in the headers of a trusted proxy's request. `None` if they name no user.
    pub fn user(&self, headers: &HeaderMap) -> Option<User> {
        let values = |name: &String| {
            let values = headers.get_all(name.as_str()).map(|value| String::from_utf8_lossy(value.as_bytes()));
            values.filter(|value| !value.is_empty())
        };
        let first = |name: &String| headers.get(name.as_str()).map(|v| String::from_utf8_lossy(v.as_bytes()));
        let first = |names: &[String]| names.iter().filter_map(first).find(|value| !value.is_empty());
        let name = first(&self.username)?;
        let mut extra = Extra::new();
        for prefix in &self.prefixes {
            for (header, value) in headers {
                let Some(key) = header.as_str().strip_prefix(prefix.as_str()) else { continue };
                let key = percent_decode_str(key).decode_utf8().map_or_else(|_| key.to_owned(), |key| key.into_owned());
                extra.entry(key).or_default().push(String::from_utf8_lossy(value.as_bytes()).into_owned());
            }
        }
        let user = User {
            name: name.as_ref().into(),
            uid: first(&self.uid).unwrap_or_default().as_ref().into(),
            groups: self.groups.iter().flat_map(values).map(|group| group.as_ref().into()).collect(),
            extra,
        };
        Some(user.authenticated())
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderName, HeaderValue};

    use super::*;

    fn proxy() -> FrontProxy {
        let key = rcgen::KeyPair::generate().unwrap();
        let authority = rcgen::CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap();
        let lower = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        FrontProxy {
            roots: ClientRoots::new(vec![authority.der().clone()]).unwrap(),
            names: Vec::new(),
            username: lower(&["x-other", "x-remote-user"]),
            uid: lower(&["x-remote-uid"]),
            groups: lower(&["x-remote-group"]),
            prefixes: lower(&["x-remote-extra-", "x_more-"]),
        }
    }

    #[test]
    fn identity_headers_are_recognized_in_any_spelling() {
        let proxy = proxy();
        for usual in ["Authorization", "X_REMOTE_USER", "x-remote_group", "x-remote-extra-a", "impersonate_uid"] {
            assert!(identifies_user(usual, None) && identifies_user(usual, Some(&proxy)), "{usual}");
        }
        for own in ["x-other", "X_Other", "x-more-b", "x_more_b"] {
            assert!(!identifies_user(own, None) && identifies_user(own, Some(&proxy)), "{own}");
        }
        for other in ["x-remote-users", "x-remote-address", "x-others", "x-more", "accept"] {
            assert!(!identifies_user(other, Some(&proxy)), "{other}");
        }
    }

    #[test]
    fn front_proxy_headers_name_the_user() {
        let proxy = proxy();
        let mut headers = HeaderMap::new();
        assert_eq!(proxy.user(&headers), None);
        for (name, value) in [
            ("x-other", ""),
            ("x-remote-user", "ann"),
            ("x-remote-uid", "u-1"),
            ("x-remote-group", "dev"),
            ("x-remote-group", "ops"),
            ("x-remote-extra-acme.com%2fproject", "one"),
        ] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let user = proxy.user(&headers).unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("ann", "u-1"));
        assert_eq!(user.groups, ["dev", "ops", "system:authenticated"]);
        assert_eq!(user.extra["acme.com/project"], ["one"]);
    }
}
