//! The authorizers, from the flags `--authorization-*` or from an AuthorizationConfiguration.

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flotilla_proto::duration;
use flotilla_proto::value::Value;

use super::conditions;
use super::document::{self, DocumentForm};
use super::reload::FollowedFile;
use crate::access::authorizer::{Chain, Mode};
use crate::access::decision::Verdict;
use crate::access::webhook::{AccessWebhook, AccessWebhookSettings, WebhookError};
use crate::config::{AuthorizationMode, Config};
use crate::field::{ErrorKind, Errors, Path, joined, quote};
use crate::limits;
use crate::outbound::Outbound;
use crate::pki::{PkiError, read_credential};
use crate::prometheus::Meter;
use crate::rules::names;

const KIND: &str = "AuthorizationConfiguration";
const VERSIONS: [&str; 3] =
    ["apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"];
/// The types of authorizers of Kubernetes, sorted. This server lacks ABAC.
const TYPES: [&str; 6] = ["ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"];
/// The name of the webhook that flags configure.
const OF_FLAGS: &str = "default";
const AUTHORIZED_TTL: &str = "5m0s";
const UNAUTHORIZED_TTL: &str = "30s";

const CONNECTION: DocumentForm = DocumentForm::Object(
    "WebhookConnectionInfo",
    &[("type", DocumentForm::Text), ("kubeConfigFile", DocumentForm::Text)],
);
const CONDITION: DocumentForm = DocumentForm::Object("WebhookMatchCondition", &[("expression", DocumentForm::Text)]);
const WEBHOOK: DocumentForm = DocumentForm::Object(
    "WebhookConfiguration",
    &[
        ("authorizedTTL", DocumentForm::Text),
        ("cacheAuthorizedRequests", DocumentForm::Bool),
        ("unauthorizedTTL", DocumentForm::Text),
        ("cacheUnauthorizedRequests", DocumentForm::Bool),
        ("timeout", DocumentForm::Text),
        ("subjectAccessReviewVersion", DocumentForm::Text),
        ("matchConditionSubjectAccessReviewVersion", DocumentForm::Text),
        ("failurePolicy", DocumentForm::Text),
        ("connectionInfo", CONNECTION),
        ("matchConditions", DocumentForm::List(&CONDITION)),
    ],
);
const AUTHORIZER: DocumentForm = DocumentForm::Object(
    "AuthorizerConfiguration",
    &[("type", DocumentForm::Text), ("name", DocumentForm::Text), ("webhook", WEBHOOK)],
);
const FORM: DocumentForm = DocumentForm::Object(KIND, &[("authorizers", DocumentForm::List(&AUTHORIZER))]);

/// The reason why the authorizers cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthorizersError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] PkiError),
    /// The file is not a configuration.
    #[error("failed to load AuthorizationConfiguration from file: {0}")]
    Document(String),
    /// The configuration is not valid.
    #[error("{0}")]
    Invalid(String),
    /// A webhook cannot be used.
    #[error(transparent)]
    Webhook(#[from] WebhookError),
}

/// An authorizer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum AuthorizerSettings {
    Mode(AuthorizationMode),
    Webhook(AccessWebhookSettings),
}

/// The authorizers in their order, with the connections and the meter that their webhooks use.
#[derive(Debug)]
pub struct Authorizers {
    all: Vec<AuthorizerSettings>,
    /// The file that they come from. `None` if they come from flags.
    file: Option<FollowedFile>,
    outbound: Outbound,
    meter: Arc<Meter>,
}

impl Authorizers {
    /// Reads the flags, or the file that they name.
    ///
    /// # Errors
    /// The file cannot be read or is not valid.
    pub fn of(config: &Config, outbound: Outbound, meter: Arc<Meter>) -> Result<Self, AuthorizersError> {
        let Some(path) = &config.authorization.authorization_config else {
            let all =
                config.authorization.authorization_mode.iter().map(|mode| match (mode, webhook_of_flags(config)) {
                    (AuthorizationMode::Webhook, Some(webhook)) => AuthorizerSettings::Webhook(webhook),
                    (mode, _) => AuthorizerSettings::Mode(*mode),
                });
            return Ok(Self { all: all.collect(), file: None, outbound, meter });
        };
        let text = read_credential(path)?;
        let all = parse(&text, &[])?;
        Ok(Self { all, file: Some(FollowedFile::new(path, text)), outbound, meter })
    }

    /// Returns the chain of the authorizers.
    ///
    /// # Errors
    /// A webhook cannot be used.
    pub fn chain(&self) -> Result<Chain, AuthorizersError> {
        let links = self.all.iter().map(|settings| {
            let step = match settings {
                AuthorizerSettings::Mode(AuthorizationMode::AlwaysAllow) => Mode::AlwaysAllow,
                AuthorizerSettings::Mode(AuthorizationMode::AlwaysDeny) => Mode::AlwaysDeny,
                AuthorizerSettings::Mode(AuthorizationMode::Node) => Mode::Node,
                AuthorizerSettings::Mode(AuthorizationMode::Rbac) => Mode::Rbac,
                AuthorizerSettings::Mode(AuthorizationMode::Webhook) => {
                    let why = "authorization-mode Webhook's authorization config file not passed";
                    return Err(AuthorizersError::Invalid(why.to_owned()));
                }
                AuthorizerSettings::Webhook(webhook) => {
                    let (outbound, meter) = (self.outbound.clone(), Arc::clone(&self.meter));
                    let made = AccessWebhook::new(webhook.clone(), outbound, meter)?;
                    Mode::Webhook(webhook.name.clone(), Arc::new(made))
                }
            };
            Ok(step.counted(&self.meter))
        });
        Ok(Chain::of(links.collect::<Result<Vec<_>, _>>()?))
    }

    /// Returns whether the flags let everybody do everything (`AlwaysAllow`).
    pub fn are_open(&self) -> bool {
        self.file.is_none() && self.all.contains(&AuthorizerSettings::Mode(AuthorizationMode::AlwaysAllow))
    }

    /// Follows the file that the authorizers come from, for ever, and passes each new chain to `replace`. A file that
    /// is not valid changes nothing.
    pub async fn follow(mut self, replace: impl Fn(Chain)) {
        let Some(mut file) = self.file.take() else { return };
        let required: Vec<&str> = self.all.iter().filter_map(AuthorizerSettings::required).collect();
        loop {
            let text = file.change().await;
            match self.reread(&text, &required) {
                Ok(Some(chain)) => {
                    replace(chain);
                    tracing::info!(path = %file.path().display(), "the authorization configuration is in use");
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(path = %file.path().display(), %error, "the changed authorization configuration is not used");
                }
            }
        }
    }

    fn reread(&mut self, text: &str, required: &[&str]) -> Result<Option<Chain>, AuthorizersError> {
        let all = parse(text, required)?;
        if all == self.all {
            return Ok(None);
        }
        let old = std::mem::replace(&mut self.all, all);
        self.chain().map(Some).inspect_err(|_| self.all = old)
    }
}

impl AuthorizerSettings {
    /// Returns the type of an authorizer that a changed file must still have. Returns `None` for a webhook, which a
    /// changed file may omit.
    fn required(&self) -> Option<&'static str> {
        match self {
            Self::Mode(mode) => Some(name(*mode)),
            Self::Webhook(_) => None,
        }
    }
}

const fn name(mode: AuthorizationMode) -> &'static str {
    match mode {
        AuthorizationMode::AlwaysAllow => "AlwaysAllow",
        AuthorizationMode::AlwaysDeny => "AlwaysDeny",
        AuthorizationMode::Node => "Node",
        AuthorizationMode::Rbac => "RBAC",
        AuthorizationMode::Webhook => "Webhook",
    }
}

fn webhook_of_flags(config: &Config) -> Option<AccessWebhookSettings> {
    Some(AccessWebhookSettings {
        name: OF_FLAGS.to_owned(),
        kubeconfig: config.authorization.authorization_webhook_config_file.clone()?,
        version: config.authorization.authorization_webhook_version.clone(),
        timeout: limits::AUTHORIZER_TIMEOUT_MAX,
        authorized_ttl: config.authorization.authorization_webhook_cache_authorized_ttl.0,
        unauthorized_ttl: config.authorization.authorization_webhook_cache_unauthorized_ttl.0,
        on_error: Verdict::NoOpinion,
        conditions: Vec::new(),
    })
}

/// Reads a configuration, which must have authorizers of the types `required`.
fn parse(text: &str, required: &[&str]) -> Result<Vec<AuthorizerSettings>, AuthorizersError> {
    let document = match text.is_empty() {
        true => Value::Null,
        false => document::read(text, KIND, &VERSIONS, FORM).map_err(AuthorizersError::Document)?,
    };
    let mut errors = Errors::default();
    let all = authorizers(&document, &mut errors);
    if !errors.is_empty() {
        return Err(AuthorizersError::Invalid(errors.joined()));
    }
    let stated = document.list_at(&["authorizers"]);
    let mut wrong: Vec<String> = Vec::new();
    for (kind, name) in stated.iter().map(|one| (one.str_at(&["type"]), one.str_at(&["name"]))) {
        let expected = kind.to_lowercase();
        if kind != "Webhook" && name != expected {
            wrong.push(format!("expected name {expected} for authorizer {kind} instead of {name}"));
        }
    }
    let mut missing: Vec<&str> =
        required.iter().copied().filter(|kind| !stated.iter().any(|one| one.str_at(&["type"]) == *kind)).collect();
    if !missing.is_empty() {
        missing.sort_unstable();
        wrong.push(format!("missing required types: [{}]", missing.join(" ")));
    }
    if wrong.is_empty() { Ok(all) } else { Err(AuthorizersError::Invalid(joined(wrong))) }
}

fn authorizers(document: &Value, errors: &mut Errors) -> Vec<AuthorizerSettings> {
    let (root, stated) = (Path::root("authorizers"), document.list_at(&["authorizers"]));
    if stated.is_empty() {
        errors.required(&root, "at least one authorization mode must be defined");
    }
    let (mut all, mut types, mut seen_names) = (Vec::new(), Vec::new(), Vec::new());
    for (at, one) in stated.iter().enumerate() {
        let path = root.index(at);
        let (kind, name) = (one.str_at(&["type"]), one.str_at(&["name"]));
        if kind.is_empty() {
            errors.required(&path.child("type"), "");
            continue;
        }
        if !TYPES.contains(&kind) {
            errors.not_supported(&path.child("type"), kind, &TYPES);
            continue;
        }
        if kind != "Webhook" && types.contains(&kind) {
            errors.duplicate(&path.child("type"), &kind.into());
            continue;
        }
        types.push(kind);
        check_name(&path.child("name"), name, &seen_names, errors);
        seen_names.push(name);
        let webhook = one.at(&["webhook"]);
        if kind != "Webhook" && !webhook.is_null() {
            errors.invalid_str(&path.child("webhook"), "non-null", "may only be specified when type=Webhook");
        }
        match kind {
            "AlwaysAllow" => all.push(AuthorizerSettings::Mode(AuthorizationMode::AlwaysAllow)),
            "AlwaysDeny" => all.push(AuthorizerSettings::Mode(AuthorizationMode::AlwaysDeny)),
            "Node" => all.push(AuthorizerSettings::Mode(AuthorizationMode::Node)),
            "RBAC" => all.push(AuthorizerSettings::Mode(AuthorizationMode::Rbac)),
            "Webhook" if webhook.is_null() => errors.required(&path.child("webhook"), "required when type=Webhook"),
            "Webhook" => all.push(AuthorizerSettings::Webhook(of_file(&path, name, webhook, errors))),
            _ => errors.invalid_str(&path.child("type"), kind, "the mode ABAC is not supported here"),
        }
    }
    all
}

fn check_name(path: &Path<'_>, name: &str, seen: &[&str], errors: &mut Errors) {
    if name.is_empty() {
        return errors.required(path, "");
    }
    if seen.contains(&name) {
        return errors.duplicate(path, &name.into());
    }
    let wrong = names::dns1123_subdomain(name);
    if !wrong.is_empty() {
        errors.invalid_str(path, name, format!("authorizer name is invalid: {}", wrong.join(", ")));
    }
}

/// Reads a webhook of the file; adds an error for each field that is wrong.
fn of_file(path: &Path<'_>, name: &str, webhook: &Value, errors: &mut Errors) -> AccessWebhookSettings {
    let text = |member: &str| webhook.str_at(&[member]);
    let timeout = span(path, "timeout", text("timeout"), "", errors);
    if timeout > limits::AUTHORIZER_TIMEOUT_MAX {
        errors.invalid_str(&path.child("timeout"), &shown(timeout), "must be > 0s and <= 30s");
    }
    let authorized_ttl = span(path, "authorizedTTL", text("authorizedTTL"), AUTHORIZED_TTL, errors);
    let unauthorized_ttl = span(path, "unauthorizedTTL", text("unauthorizedTTL"), UNAUTHORIZED_TTL, errors);
    let caches = |member: &str| webhook.at(&[member]).as_bool() != Some(false);
    let version = text("subjectAccessReviewVersion");
    one_of(&path.child("subjectAccessReviewVersion"), version, &["v1", "v1beta1"], errors);
    let conditions = webhook.list_at(&["matchConditions"]);
    match text("matchConditionSubjectAccessReviewVersion") {
        "" if conditions.is_empty() => {}
        "" => errors.required(
            &path.child("matchConditionSubjectAccessReviewVersion"),
            "required if match conditions are specified",
        ),
        version => one_of(&path.child("matchConditionSubjectAccessReviewVersion"), version, &["v1"], errors),
    }
    one_of(&path.child("failurePolicy"), text("failurePolicy"), &["NoOpinion", "Deny"], errors);
    let kubeconfig = connection(path, webhook.at(&["connectionInfo"]), errors);
    AccessWebhookSettings {
        name: name.to_owned(),
        kubeconfig,
        version: version.to_owned(),
        timeout,
        authorized_ttl: if caches("cacheAuthorizedRequests") { authorized_ttl } else { Duration::ZERO },
        unauthorized_ttl: if caches("cacheUnauthorizedRequests") { unauthorized_ttl } else { Duration::ZERO },
        on_error: if text("failurePolicy") == "Deny" { Verdict::Deny } else { Verdict::NoOpinion },
        conditions: conditions::read(path, conditions, errors),
    }
}

/// Reads a span of time, which must be longer than zero. `default` replaces a span that is missing or zero. An empty
/// `default` replaces nothing.
fn span(path: &Path<'_>, member: &str, text: &str, default: &str, errors: &mut Errors) -> Duration {
    let place = path.child(member);
    let nanos = |text: &str| if text.is_empty() { Some(0) } else { duration::parse(text) };
    let stated = match nanos(text) {
        None => {
            errors.invalid_str(&place, text, format!("time: invalid duration {text:?}"));
            return Duration::ZERO;
        }
        Some(0) => nanos(default).unwrap_or(0),
        Some(stated) => stated,
    };
    match u64::try_from(stated) {
        Ok(0) => errors.required(&place, ""),
        Ok(_) => {}
        Err(_) => {
            let why = if member == "timeout" { "must be > 0s and <= 30s" } else { "must be > 0s" };
            errors.invalid_str(&place, &duration::format(stated), why);
        }
    }
    Duration::from_nanos(u64::try_from(stated).unwrap_or(0))
}

fn shown(span: Duration) -> String {
    duration::format(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX))
}

fn one_of(path: &Path<'_>, text: &str, allowed: &[&str], errors: &mut Errors) {
    match text {
        "" => errors.required(path, ""),
        text if !allowed.contains(&text) => errors.not_supported(path, text, allowed),
        _ => {}
    }
}

/// Reads the connection info of a webhook. Returns the path of the kubeconfig that names the webhook.
fn connection(path: &Path<'_>, info: &Value, errors: &mut Errors) -> PathBuf {
    const BY_FILE: &str = "KubeConfigFile";
    const IN_CLUSTER: &str = "InClusterConfig";
    let path = path.child("connectionInfo");
    let (place, file) = (path.child("kubeConfigFile"), info.str_at(&["kubeConfigFile"]));
    match info.str_at(&["type"]) {
        IN_CLUSTER if !info.at(&["kubeConfigFile"]).is_null() => {
            errors.invalid_str(&place, file, "can only be set when type=KubeConfigFile");
        }
        IN_CLUSTER => {
            errors.invalid_str(&path.child("type"), IN_CLUSTER, "an API server has no in-cluster configuration");
        }
        BY_FILE if file.is_empty() => errors.required(&place, ""),
        BY_FILE if !FilePath::new(file).is_absolute() => errors.invalid_str(&place, file, "must be an absolute path"),
        BY_FILE => match std::fs::metadata(file) {
            Err(error) => errors.invalid_str(&place, file, format!("error loading file: {}", go_text(file, &error))),
            Ok(found) if !found.is_file() => errors.invalid_str(&place, file, "must be a regular file"),
            Ok(_) => {}
        },
        "" => errors.required(&path.child("type"), ""),
        kind => {
            let file = if info.at(&["kubeConfigFile"]).is_null() { "null".to_owned() } else { quote(file) };
            let shown = format!("{{\"Type\":{},\"KubeConfigFile\":{file}}}", quote(kind));
            let why = format!("supported values: {}, {}", quote(IN_CLUSTER), quote(BY_FILE));
            errors.push(ErrorKind::NotSupported, &path.child("type"), shown, why);
        }
    }
    PathBuf::from(file)
}

/// Formats an error about a file as Go does.
fn go_text(file: &str, error: &std::io::Error) -> String {
    let why = match error.kind() {
        std::io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    };
    format!("stat {file}: {why}")
}

#[cfg(test)]
#[path = "authorizers_tests.rs"]
mod tests;
