//! The settings of webhooks in an AuthorizationConfiguration.

use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

use flotilla_proto::duration;
use flotilla_proto::value::Value;

use super::conditions;
use super::document::DocumentForm;
use crate::access::decision::Verdict;
use crate::access::webhook::AccessWebhookSettings;
use crate::field::{ErrorKind, Errors, Path, quote};
use crate::limits;

const AUTHORIZED_TTL: &str = "5m0s";
const UNAUTHORIZED_TTL: &str = "30s";

const CONNECTION: DocumentForm = DocumentForm::Object(
    "WebhookConnectionInfo",
    &[("type", DocumentForm::Text), ("kubeConfigFile", DocumentForm::Text)],
);
const CONDITION: DocumentForm = DocumentForm::Object("WebhookMatchCondition", &[("expression", DocumentForm::Text)]);
/// The form of a webhook.
pub(super) const FORM: DocumentForm = DocumentForm::Object(
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
/// Reads the webhook of an authorizer at `path`. Adds an error for each field that is wrong.
pub(super) fn read(path: &Path<'_>, name: &str, webhook: &Value, errors: &mut Errors) -> AccessWebhookSettings {
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
