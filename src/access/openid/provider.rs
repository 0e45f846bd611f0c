//! Fetches the keys of a provider: its discovery document names the address of its key set (OpenID Connect Discovery
//! 1.0, section 4).

use flotilla_golang::url::Url;
use http::Request;
use http::header::{ACCEPT, HOST, USER_AGENT};
use serde::Deserialize;
use tokio::time::Instant;

use super::keys::ProviderKeys;
use super::settings::IssuerSettings;
use crate::limits;
use crate::outbound::{self, Network, Outbound, Peer, Secure, Trust};
use crate::version;

/// The port of a URL that names none.
const PORT: u16 = 443;

/// The reason why keys cannot be fetched.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The provider does not answer.
    #[error("Get {0:?}: {1}")]
    Unreachable(String, String),
    /// The provider answers with a status other than 2xx.
    #[error("Get {0:?}: status {1}")]
    Status(String, u16),
    /// The answer does not have the form of a discovery document or of a key set.
    #[error("Get {0:?}: the answer cannot be parsed")]
    Malformed(String, #[source] serde_json::Error),
    /// The discovery document is that of another issuer.
    #[error("oidc: issuer did not match the issuer returned by provider, expected {0:?} got {1:?}")]
    Issuer(String, String),
    /// An address is not an https URL.
    #[error("{0:?} is not an https URL")]
    Address(String),
}

#[derive(Deserialize)]
struct Discovered {
    issuer: String,
    jwks_uri: String,
}

/// A provider.
#[derive(Debug)]
pub struct Provider {
    issuer: String,
    /// The URL of the discovery document.
    document: String,
    trust: Trust,
    network: Network,
    outbound: Outbound,
}

impl Provider {
    /// Returns the provider of the settings.
    pub fn new(settings: &IssuerSettings, outbound: Outbound) -> Self {
        let document = match &settings.discovery_url {
            Some(url) => url.clone(),
            None => format!("{}/.well-known/openid-configuration", settings.url.trim_end_matches('/')),
        };
        let trust = Trust::bundle(settings.authorities.clone());
        Self { issuer: settings.url.clone(), document, trust, network: settings.network, outbound }
    }

    /// Fetches the keys.
    ///
    /// # Errors
    /// The provider does not answer as it should.
    pub async fn keys(&self) -> Result<ProviderKeys, ProviderError> {
        let found = self.get(&self.document).await?;
        let found: Discovered =
            serde_json::from_slice(&found).map_err(|error| ProviderError::Malformed(self.document.clone(), error))?;
        if found.issuer != self.issuer {
            return Err(ProviderError::Issuer(self.issuer.clone(), found.issuer));
        }
        let keys = self.get(&found.jwks_uri).await?;
        ProviderKeys::parse(&keys).map_err(|error| ProviderError::Malformed(found.jwks_uri, error))
    }

    async fn get(&self, address: &str) -> Result<bytes::Bytes, ProviderError> {
        let url = Url::parse(address).ok().filter(|url| url.scheme == "https" && !url.hostname().is_empty());
        let url = url.ok_or_else(|| ProviderError::Address(address.to_owned()))?;
        let unreachable = |why: String| ProviderError::Unreachable(address.to_owned(), why);
        let request = Request::get(address)
            .header(HOST, String::from_utf8_lossy(&url.host).as_ref())
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, format!("kube-apiserver/{}", version::GIT_VERSION))
            .body(outbound::empty())
            .map_err(|error| unreachable(error.to_string()))?;
        let deadline = Instant::now() + limits::OPENID_TIMEOUT;
        let reading = async {
            let answer = self.outbound.send(&self.peer(&url), request, deadline).await?;
            let (head, body) = answer.into_parts();
            Ok::<_, outbound::Error>((head.status, outbound::read(body, limits::OPENID_ANSWER_BYTES).await?))
        };
        let answered = tokio::time::timeout_at(deadline, reading).await.unwrap_or(Err(outbound::Error::Deadline));
        let (status, body) = answered.map_err(|error| unreachable(error.to_string()))?;
        if !status.is_success() {
            return Err(ProviderError::Status(address.to_owned(), status.as_u16()));
        }
        Ok(body)
    }

    fn peer(&self, url: &Url) -> Peer {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (host, port) = (text(url.hostname()), text(url.port()).parse().unwrap_or(PORT));
        let secure = Secure { server_name: host.clone(), trust: self.trust.clone(), identity: None, http2: true };
        Peer { host, port, network: self.network, guarded: false, secure: Some(secure) }
    }
}
