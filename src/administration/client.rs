//! The HTTP client for the commands under `flotilla cluster`, `backup` and others.

use std::io::Read;
use std::sync::Arc;

use flotilla_proto::json;
use flotilla_proto::value::Value;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::CertifiedKey;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use ureq::http::Response;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};
use ureq::typestate::{WithBody, WithoutBody};
use ureq::{Agent, Body, RequestBuilder};

use super::kubeconfig::Kubeconfig;
use super::messages::{CLUSTER_PATH, ClusterView};
use crate::limits;
use crate::version;

/// A client of one server, as the user of a kubeconfig.
#[derive(Debug)]
pub struct Client {
    agent: Agent,
    server: String,
    token: Option<String>,
}

/// The outcome of a request for a change.
#[derive(Debug)]
pub enum Changed {
    /// The change is made; this is the cluster afterwards.
    Done(ClusterView),
    /// The change takes longer than a request may take; repeating the request waits for it.
    GoingOn,
}

/// The reasons why a request has no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The certificate in the kubeconfig and its key cannot be parsed, or do not belong together.
    #[error("the client certificate in the kubeconfig cannot be used")]
    Certificate(#[source] rustls::Error),
    /// The server does not answer.
    #[error("{server} does not answer")]
    Unreachable {
        /// Its URL.
        server: String,
        /// The cause.
        source: Box<ureq::Error>,
    },
    /// The server refuses.
    #[error("{message}")]
    Refused {
        /// HTTP status code.
        code: u16,
        /// The message of the server.
        message: String,
        /// The kind of names in the request that the server does not know: `members`, `groups`, or empty.
        unknown: String,
    },
    /// The answer exceeds the bound.
    #[error("the answer of {server} to {path} is too long")]
    TooLong {
        /// Its URL.
        server: String,
        /// The path of the request.
        path: String,
    },
    /// The answering server is not a Flotilla server.
    #[error("{server} is not a Flotilla server: it answers with {code}")]
    Foreign {
        /// Its URL.
        server: String,
        /// HTTP status code.
        code: u16,
    },
}

/// The members of a `Status` that are shown to users.
#[derive(Debug, Deserialize)]
struct Status {
    message: String,
    #[serde(default)]
    details: StatusDetails,
}

#[derive(Debug, Default, Deserialize)]
struct StatusDetails {
    #[serde(default)]
    kind: String,
}

impl Client {
    /// Returns a client of the server of a kubeconfig. It connects with the first request.
    ///
    /// # Errors
    /// If the user's certificate and key cannot be used.
    pub fn new(kubeconfig: Kubeconfig) -> Result<Self, ClientError> {
        let provider = Arc::new(ring::default_provider());
        let certificate = client_certificate(&kubeconfig, &provider)?;
        let authorities = kubeconfig.authorities.iter().map(|der| Certificate::from_der(der).to_owned());
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&authorities.collect::<Vec<_>>()))
            .client_cert(certificate)
            .unversioned_rustls_crypto_provider(provider)
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .https_only(true)
            .proxy(None)
            .max_redirects(0)
            .http_status_as_error(false)
            .timeout_connect(Some(limits::ADMINISTRATION_CONNECT_TIMEOUT))
            .timeout_global(Some(limits::ADMINISTRATION_REQUEST_TIMEOUT))
            .user_agent(format!("flotilla/{}", version::GIT_VERSION))
            .build();
        Ok(Self { agent: config.into(), server: kubeconfig.server, token: kubeconfig.token })
    }

    /// Returns the cluster as the server sees it.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn status(&self) -> Result<ClusterView, ClientError> {
        let (code, body) = self.whole(self.get(CLUSTER_PATH).call())?;
        self.decoded(code, &body)
    }

    /// Starts to download the content of a path, without a bound on its size.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn download(&self, path: &str) -> Result<impl Read + use<>, ClientError> {
        self.download_as(path, "*/*")
    }

    /// Does the same as [`Client::download`], in a form that an `Accept` header asks for.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn download_as(&self, path: &str, accept: &str) -> Result<impl Read + use<>, ClientError> {
        let request = self.get(path).header("Accept", accept);
        let request =
            request.config().timeout_global(None).timeout_recv_response(Some(limits::ADMINISTRATION_REQUEST_TIMEOUT));
        let answered = request.timeout_recv_body(Some(limits::BACKUP_DOWNLOAD_TIMEOUT)).build().call();
        if let Ok(answer) = &answered
            && answer.status() == 200
        {
            let unreachable =
                |source| ClientError::Unreachable { server: self.server.clone(), source: Box::new(source) };
            return answered.map(|answer| answer.into_body().into_reader()).map_err(unreachable);
        }
        let (code, body) = self.whole(answered)?;
        Err(self.refusal(code, &body))
    }

    /// Returns the decoded JSON at a path.
    ///
    /// # Errors
    /// See [`ClientError`]. An answer that has an error code or is too long is an error, too.
    pub fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let (code, body) = self.up_to(self.get(path).call(), limits::OVERVIEW_BYTES)?;
        if body.len() as u64 == limits::OVERVIEW_BYTES {
            return Err(ClientError::TooLong { server: self.server.clone(), path: path.to_owned() });
        }
        self.decoded(code, &body)
    }

    /// Sends a POST without a body to a path, and returns the object that the server made.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn obtain<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let (code, body) = self.whole(self.post(path).send_empty())?;
        self.decoded(code, &body)
    }

    /// Returns the URL of the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Requests a change by a POST to a path below [`CLUSTER_PATH`].
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn change(&self, path: &str, change: &impl Serialize) -> Result<Changed, ClientError> {
        let request = self.post(&format!("{CLUSTER_PATH}/{path}"));
        let text = serde_json::json!(change).to_string();
        let (code, body) = self.whole(request.content_type("application/json").send(text))?;
        match code {
            504 => Ok(Changed::GoingOn),
            _ => self.decoded(code, &body).map(Changed::Done),
        }
    }

    /// Creates an object by a POST to the path of its collection. Returns `false` if an object of this name exists.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn create(&self, path: &str, object: &Value) -> Result<bool, ClientError> {
        let request = self.post(path).content_type("application/json");
        let (code, body) = self.whole(request.send(json::to_vec(object)))?;
        match code {
            200 | 201 => Ok(true),
            409 => Ok(false),
            _ => Err(self.refusal(code, &body)),
        }
    }

    fn get(&self, path: &str) -> RequestBuilder<WithoutBody> {
        self.signed(self.agent.get(format!("{}{path}", self.server)))
    }

    fn post(&self, path: &str) -> RequestBuilder<WithBody> {
        self.signed(self.agent.post(format!("{}{path}", self.server)))
    }

    /// Adds the user's token, if the user has one.
    fn signed<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.token {
            Some(token) => request.header("Authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    /// Returns the status code and the whole body of an answer.
    fn whole(&self, answered: Result<Response<Body>, ureq::Error>) -> Result<(u16, Vec<u8>), ClientError> {
        self.up_to(answered, limits::ADMINISTRATION_ANSWER_BYTES)
    }

    /// Returns the status code of an answer, and at most `limit` bytes of its body.
    fn up_to(&self, answered: Result<Response<Body>, ureq::Error>, limit: u64) -> Result<(u16, Vec<u8>), ClientError> {
        let unreachable = |source| ClientError::Unreachable { server: self.server.clone(), source: Box::new(source) };
        let answer = answered.map_err(unreachable)?;
        let (code, mut body) = (answer.status().as_u16(), Vec::new());
        let reader = answer.into_body().into_reader();
        let read = reader.take(limit).read_to_end(&mut body);
        read.map_err(|error| unreachable(error.into()))?;
        Ok((code, body))
    }

    fn decoded<T: DeserializeOwned>(&self, code: u16, body: &[u8]) -> Result<T, ClientError> {
        if matches!(code, 200 | 201) {
            return serde_json::from_slice(body).map_err(|_| self.refusal(code, b""));
        }
        Err(self.refusal(code, body))
    }

    /// Converts an unsuccessful answer to an error.
    fn refusal(&self, code: u16, body: &[u8]) -> ClientError {
        match serde_json::from_slice(body) {
            Ok(Status { message, details }) => ClientError::Refused { code, message, unknown: details.kind },
            Err(_) => ClientError::Foreign { server: self.server.clone(), code },
        }
    }
}

fn client_certificate(kubeconfig: &Kubeconfig, provider: &CryptoProvider) -> Result<Option<ClientCert>, ClientError> {
    let Some((chain, key)) = &kubeconfig.certificate else { return Ok(None) };
    let unusable = || ClientError::Certificate(rustls::Error::General("the key cannot be read".into()));
    let der = PrivateKeyDer::from_pem_slice(key).map_err(|_| unusable())?;
    // The HTTP client does not check that certificate and key belong together.
    CertifiedKey::from_der(chain.clone(), der, provider).map_err(ClientError::Certificate)?;
    let chain: Vec<_> = chain.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
    let key = PrivateKey::from_pem(key).map_err(|_| unusable())?;
    Ok(Some(ClientCert::new_with_certs(&chain, key)))
}
