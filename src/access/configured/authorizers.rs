//! The authorizers, from the flags `--authorization-*` or from an AuthorizationConfiguration.

use std::sync::Arc;

use clap::ValueEnum;
use flotilla_proto::value::Value;

use super::document::{self, DocumentForm};
use super::reload::FollowedFile;
use super::webhooks;
use crate::access::abac::{Policies, PolicyError};
use crate::access::authorizer::{Chain, Mode};
use crate::access::decision::Verdict;
use crate::access::webhook::{AccessWebhook, AccessWebhookSettings, WebhookError};
use crate::config::{AuthorizationMode, Config};
use crate::field::{Errors, Path, joined};
use crate::limits;
use crate::outbound::Outbound;
use crate::pki::{PkiError, read_credential};
use crate::prometheus::Meter;
use crate::rules::names;

const KIND: &str = "AuthorizationConfiguration";
const VERSIONS: [&str; 3] =
    ["apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"];
/// The types of authorizers, sorted.
const TYPES: [&str; 6] = ["ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"];
/// The name of the webhook that flags configure.
const OF_FLAGS: &str = "default";

const AUTHORIZER: DocumentForm = DocumentForm::Object(
    "AuthorizerConfiguration",
    &[("type", DocumentForm::Text), ("name", DocumentForm::Text), ("webhook", webhooks::FORM)],
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
    /// The file of policies cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
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
    /// The policies of the mode ABAC. `None` if the server started without that mode.
    policies: Option<Arc<Policies>>,
    outbound: Outbound,
    meter: Arc<Meter>,
}

impl Authorizers {
    /// Reads the flags, or the file that they name. Reads the policies of the mode ABAC, once.
    ///
    /// # Errors
    /// A file cannot be read or is not valid.
    pub fn of(config: &Config, outbound: Outbound, meter: Arc<Meter>) -> Result<Self, AuthorizersError> {
        let Some(path) = &config.authorization.authorization_config else {
            let all =
                config.authorization.authorization_mode.iter().map(|mode| match (mode, webhook_of_flags(config)) {
                    (AuthorizationMode::Webhook, Some(webhook)) => AuthorizerSettings::Webhook(webhook),
                    (mode, _) => AuthorizerSettings::Mode(*mode),
                });
            let all: Vec<_> = all.collect();
            return Ok(Self { policies: policies(config, &all)?, all, file: None, outbound, meter });
        };
        let text = read_credential(path)?;
        let all = parse(&text, &[])?;
        let file = Some(FollowedFile::new(path, text));
        Ok(Self { policies: policies(config, &all)?, all, file, outbound, meter })
    }

    /// Returns the chain of the authorizers.
    ///
    /// # Errors
    /// A webhook cannot be used, or a changed file adds the mode ABAC.
    pub fn chain(&self) -> Result<Chain, AuthorizersError> {
        let links = self.all.iter().map(|settings| {
            let step = match settings {
                AuthorizerSettings::Mode(AuthorizationMode::AlwaysAllow) => Mode::AlwaysAllow,
                AuthorizerSettings::Mode(AuthorizationMode::AlwaysDeny) => Mode::AlwaysDeny,
                AuthorizerSettings::Mode(AuthorizationMode::Node) => Mode::Node,
                AuthorizerSettings::Mode(AuthorizationMode::Rbac) => Mode::Rbac,
                AuthorizerSettings::Mode(AuthorizationMode::Abac) => {
                    let why = "the mode ABAC can only be added at a start";
                    let policies = self.policies.clone();
                    Mode::Abac(policies.ok_or_else(|| AuthorizersError::Invalid(why.to_owned()))?)
                }
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
        AuthorizationMode::Abac => "ABAC",
        AuthorizationMode::AlwaysAllow => "AlwaysAllow",
        AuthorizationMode::AlwaysDeny => "AlwaysDeny",
        AuthorizationMode::Node => "Node",
        AuthorizationMode::Rbac => "RBAC",
        AuthorizationMode::Webhook => "Webhook",
    }
}

/// Reads the policies of the mode ABAC. Returns `None` if that is not among the authorizers.
fn policies(config: &Config, all: &[AuthorizerSettings]) -> Result<Option<Arc<Policies>>, AuthorizersError> {
    if !all.contains(&AuthorizerSettings::Mode(AuthorizationMode::Abac)) {
        return Ok(None);
    }
    let Some(path) = &config.authorization.authorization_policy_file else {
        let why = "authorization-mode ABAC's authorization policy file not passed";
        return Err(AuthorizersError::Invalid(why.to_owned()));
    };
    Ok(Some(Arc::new(Policies::open(path)?)))
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
        let Ok(mode) = AuthorizationMode::from_str(kind, false) else {
            errors.not_supported(&path.child("type"), kind, &TYPES);
            continue;
        };
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
        match mode {
            AuthorizationMode::Webhook if webhook.is_null() => {
                errors.required(&path.child("webhook"), "required when type=Webhook");
            }
            AuthorizationMode::Webhook => {
                all.push(AuthorizerSettings::Webhook(webhooks::read(&path, name, webhook, errors)));
            }
            mode => all.push(AuthorizerSettings::Mode(mode)),
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

#[cfg(test)]
#[path = "authorizers_tests.rs"]
mod tests;
