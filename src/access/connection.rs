//! Identifies the client of a connection by its certificate, once, when the connection opens.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use actix_web::dev::Extensions;
use rustls::ServerConnection;
use rustls::pki_types::{CertificateDer, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::AttributeTypeAndValue;

use super::front_proxy::FrontProxy;
use super::user::User;
use crate::pki::ClientRoots;

/// Key in [`User::extra`] of the id of the credential with which the user authenticated.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The identity in the client certificate of a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ConnectionIdentity {
    /// The client sent no certificate.
    #[default]
    None,
    /// The certificate of a user: its common name is the user's name, its organizations are the groups.
    User {
        /// The user.
        user: Arc<User>,
        /// When the certificate expires.
        not_after: SystemTime,
    },
    /// The certificate is not trusted, or names no user.
    Refused,
}

impl ConnectionIdentity {
    /// Verifies the certificate chain of a client, which begins with the client's own certificate.
    pub fn of_chain(chain: &[CertificateDer<'_>], roots: &ClientRoots, now: UnixTime) -> Self {
        let Some(leaf) = chain.first() else {
            return Self::None;
        };
        match roots.verify(chain, now) {
            Ok(()) => of_certificate(leaf).unwrap_or(Self::Refused),
            Err(error) => {
                tracing::debug!(%error, "client certificate refused");
                Self::Refused
            }
        }
    }

    /// Returns the user. `None` without a trusted certificate that names one, or once the certificate has expired.
    pub fn user(&self, now: SystemTime) -> Option<&Arc<User>> {
        match self {
            Self::User { user, not_after } if now <= *not_after => Some(user),
            _ => None,
        }
    }
}

/// Returns the function that is called for each new TLS connection. It stores the [`ConnectionIdentity`] for
/// `HttpRequest::conn_data`, and a [`super::TrustedProxy`] if the client is a front proxy.
pub fn identify(
    roots: Arc<ClientRoots>,
    proxy: Option<Arc<FrontProxy>>,
) -> impl Fn(&ServerConnection, &mut Extensions) + Clone + Send + 'static {
    move |connection, data| {
        let chain = connection.peer_certificates().unwrap_or_default();
        data.insert(ConnectionIdentity::of_chain(chain, &roots, UnixTime::now()));
        if let Some(trusted) = proxy.as_ref().and_then(|proxy| proxy.judge(chain, UnixTime::now())) {
            data.insert(trusted);
        }
    }
}

/// Returns the user that a certificate names: the last common name is the user's name, the organizations are the
/// groups. Returns `None` if the certificate cannot be parsed or has no common name.
fn of_certificate(leaf: &CertificateDer<'_>) -> Option<ConnectionIdentity> {
    let (_, parsed) = X509Certificate::from_der(leaf).ok()?;
    let subject = parsed.subject();
    let name = subject.iter_common_name().filter_map(text).last().filter(|name| !name.is_empty())?;
    let digest = ring::digest::digest(&ring::digest::SHA256, leaf);
    let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let user = User {
        name: name.into(),
        groups: subject.iter_organization().filter_map(text).map(Into::into).collect(),
        extra: [(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={hex}")])].into(),
        ..User::default()
    };
    let not_after = u64::try_from(parsed.validity().not_after.timestamp()).ok()?;
    Some(ConnectionIdentity::User {
        user: Arc::new(user.authenticated()),
        not_after: UNIX_EPOCH + Duration::from_secs(not_after),
    })
}

fn text<'a>(value: &'a AttributeTypeAndValue<'_>) -> Option<&'a str> {
    value.as_str().ok()
}
