//! The issuers whose tokens are accepted, and the requests that need no credentials, from flags or from an
//! AuthenticationConfiguration.

use std::sync::Arc;

use flotilla_proto::value::Value;

use super::document::{self, DocumentForm};
use super::jwt;
use super::reload::FollowedFile;
use crate::access::Anonymous;
use crate::access::openid::{IssuerSettings, Issuers, OpenId, SettingsError};
use crate::config::Config;
use crate::field::{ErrorKind, Errors, Path, quote};
use crate::limits;
use crate::outbound::Outbound;
use crate::pki::{PkiError, read_credential};

const KIND: &str = "AuthenticationConfiguration";
const VERSIONS: [&str; 3] =
    ["apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"];

const CONDITION: DocumentForm = DocumentForm::Object("AnonymousAuthCondition", &[("path", DocumentForm::Text)]);
const ANONYMOUS: DocumentForm = DocumentForm::Object(
    "AnonymousAuthConfig",
    &[("enabled", DocumentForm::Bool), ("conditions", DocumentForm::List(&CONDITION))],
);
const FORM: DocumentForm =
    DocumentForm::Object(KIND, &[("jwt", DocumentForm::List(&jwt::FORM)), ("anonymous", ANONYMOUS)]);

/// The reason why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthenticationError {
    /// The flags of an issuer cannot be used.
    #[error(transparent)]
    Flags(#[from] SettingsError),
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] PkiError),
    /// Both the file and flags name issuers.
    #[error("authentication-config file and oidc-* flags are mutually exclusive")]
    Both,
    /// The file is not a configuration.
    #[error("failed to load authentication configuration from file {0:?}: {1}")]
    Document(String, String),
    /// The configuration is not valid.
    #[error("invalid authentication configuration: {0}")]
    Invalid(String),
    /// An issuer is in a network to which no proxy is configured.
    #[error("oidc: egress lookup for {0:?} is not configured")]
    Network(&'static str),
    /// Both the file and a flag say which requests need no credentials.
    #[error(
        "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in authentication \
         configuration file"
    )]
    Anonymous,
}

/// The content of a file.
struct Stated {
    issuers: Vec<IssuerSettings>,
    /// `None` if the file does not say which requests need no credentials.
    anonymous: Option<Anonymous>,
}

/// The issuers whose tokens are accepted, and the requests that need no credentials.
#[derive(Debug)]
pub struct Authentication {
    /// The issuers.
    pub issuers: Arc<Issuers>,
    /// The requests that are allowed without credentials. `None` if the flags alone decide that.
    pub anonymous: Option<Anonymous>,
    file: Option<FollowedFile>,
    /// The issuers of service account tokens. No other issuer may have their names.
    own: Vec<String>,
    outbound: Outbound,
}

impl Authentication {
    /// Reads the flags, or the file that they name.
    ///
    /// # Errors
    /// The flags contradict each other, or the file cannot be read or is not valid.
    pub fn of(config: &Config, outbound: Outbound) -> Result<Self, AuthenticationError> {
        let (flags, own) = (IssuerSettings::of(config)?, config.tokens.service_account_issuer.clone());
        let Some(path) = &config.authentication_config else {
            let issuers = flags.map(|settings| Arc::new(OpenId::new(settings, outbound.clone())));
            let issuers = Arc::new(Issuers::new(issuers.into_iter().collect()));
            return Ok(Self { issuers, anonymous: None, file: None, own, outbound });
        };
        if flags.is_some() {
            return Err(AuthenticationError::Both);
        }
        let text = read_credential(path)?;
        let stated = parse(&text, &own).map_err(|error| error.of_file(path))?;
        if stated.anonymous.is_some() && config.anonymous_auth.is_some() {
            return Err(AuthenticationError::Anonymous);
        }
        let issuers = Arc::new(Issuers::new(opened(stated.issuers, &outbound).map_err(|error| error.of_file(path))?));
        let file = Some(FollowedFile::new(path, text));
        Ok(Self { issuers, anonymous: stated.anonymous, file, own, outbound })
    }

    /// Follows the file, for ever. Its issuers replace the present ones as soon as all of them have answered. A file
    /// that is not valid changes nothing.
    pub async fn follow(mut self) {
        let Some(mut file) = self.file.take() else { return };
        let mut text = file.change().await;
        loop {
            let next = match self.reread(&text) {
                Ok(issuers) => {
                    tokio::select! {
                        () = answered(&issuers) => {
                            self.issuers.replace(issuers);
                            tracing::info!(path = %file.path().display(), "the authentication configuration is in use");
                            None
                        }
                        changed = file.change() => Some(changed),
                    }
                }
                Err(error) => {
                    let path = file.path().display();
                    tracing::error!(%path, %error, "the changed authentication configuration is not used");
                    None
                }
            };
            text = match next {
                Some(text) => text,
                None => file.change().await,
            };
        }
    }

    fn reread(&self, text: &str) -> Result<Vec<Arc<OpenId>>, Wrong> {
        let stated = parse(text, &self.own)?;
        if stated.anonymous != self.anonymous {
            return Err(Wrong::Invalid("anonymous: Forbidden: changed from initial configuration file".to_owned()));
        }
        opened(stated.issuers, &self.outbound)
    }
}

fn opened(issuers: Vec<IssuerSettings>, outbound: &Outbound) -> Result<Vec<Arc<OpenId>>, Wrong> {
    let open = |settings: IssuerSettings| match settings.network.name().filter(|_| !outbound.names(settings.network)) {
        Some(network) => Err(Wrong::Network(network)),
        None => Ok(Arc::new(OpenId::new(settings, outbound.clone()))),
    };
    issuers.into_iter().map(open).collect()
}

/// Waits until the keys of all issuers are known.
async fn answered(issuers: &[Arc<OpenId>]) {
    for issuer in issuers {
        issuer.fetch_keys().await;
        while !issuer.is_ready() {
            tokio::time::sleep(limits::OPENID_NEW_ISSUER_PAUSE.max(limits::OPENID_FETCH_INTERVAL)).await;
            issuer.fetch_keys().await;
        }
    }
}

/// The reason why a text is not a valid configuration.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Wrong {
    #[error("{0}")]
    Document(String),
    #[error("{0}")]
    Invalid(String),
    #[error("oidc: egress lookup for {0:?} is not configured")]
    Network(&'static str),
}

impl Wrong {
    fn of_file(self, path: &std::path::Path) -> AuthenticationError {
        match self {
            Self::Document(why) => AuthenticationError::Document(path.display().to_string(), why),
            Self::Invalid(why) => AuthenticationError::Invalid(why),
            Self::Network(network) => AuthenticationError::Network(network),
        }
    }
}

/// Reads a configuration. `own` are the issuers of tokens of service accounts.
fn parse(text: &str, own: &[String]) -> Result<Stated, Wrong> {
    if text.is_empty() {
        return Err(Wrong::Document("empty config data".to_owned()));
    }
    let document = document::read(text, KIND, &VERSIONS, FORM).map_err(Wrong::Document)?;
    let mut errors = Errors::default();
    let (root, stated) = (Path::root("jwt"), document.list_at(&["jwt"]));
    let mut issuers = Vec::new();
    if stated.len() > limits::OPENID_ISSUERS_MAX {
        errors.too_many(&root, stated.len(), limits::OPENID_ISSUERS_MAX);
    } else {
        for (at, one) in stated.iter().enumerate() {
            let path = root.index(at);
            issuers.extend(jwt::read(&path, one, own, &mut errors));
            repeated(&path, stated, at, &mut errors);
        }
    }
    let anonymous = anonymous(document.at(&["anonymous"]), &mut errors);
    match errors.is_empty() {
        true => Ok(Stated { issuers, anonymous }),
        false => Err(Wrong::Invalid(errors.joined())),
    }
}

/// Adds an error if an earlier issuer has the same URL or the same discovery URL.
fn repeated(path: &Path<'_>, stated: &[Value], at: usize, errors: &mut Errors) {
    for member in ["url", "discoveryURL"] {
        let of = |one: &Value| one.str_at(&["issuer", member]).to_owned();
        let own = of(&stated[at]);
        if (member == "url" || !own.is_empty()) && stated[..at].iter().any(|one| of(one) == own) {
            errors.duplicate(&path.child("issuer").child(member), &own.into());
        }
    }
}

fn anonymous(stated: &Value, errors: &mut Errors) -> Option<Anonymous> {
    if stated.is_null() {
        return None;
    }
    let conditions = stated.list_at(&["conditions"]);
    if stated.at(&["enabled"]).as_bool() != Some(true) {
        if !conditions.is_empty() {
            let why = "enabled should be set to true when conditions are defined";
            let paths = conditions.iter().map(|one| format!("{{\"Path\":{}}}", quote(one.str_at(&["path"]))));
            let value = format!("[{}]", paths.collect::<Vec<_>>().join(","));
            let path = Path::root("anonymous.conditions");
            errors.push(ErrorKind::Invalid, &path, value, why);
        }
        return Some(Anonymous::Nowhere);
    }
    let paths = conditions.iter().map(|condition| condition.str_at(&["path"]).to_owned()).collect();
    Some(if conditions.is_empty() { Anonymous::Everywhere } else { Anonymous::At(paths) })
}

#[cfg(test)]
#[path = "issuers_tests.rs"]
mod tests;
