//! Checks the part of a definition that says how its objects are converted between versions.

use std::collections::HashSet;

use flotilla_proto::value::Value;

use super::{ca_bundle, is_established};
use crate::field::{Errors, Path};
use crate::kinds::admissionregistration::webhook;
use crate::rules::names;

const NO_WEBHOOK: &str = "should not be set when strategy is not set to Webhook";

/// Returns the versions of ConversionReview that the definition's webhook accepts.
fn reviews(object: &Value) -> &[Value] {
    object.list_at(&["spec", "conversion", "webhook", "conversionReviewVersions"])
}

fn is_review_known(versions: &[Value]) -> bool {
    versions.iter().any(|version| matches!(version.as_str(), Some("v1" | "v1beta1")))
}

pub(super) fn validate(object: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let conversion = object.at(&["spec", "conversion"]);
    let strategy = conversion.str_at(&["strategy"]);
    names::check_choice(&path.child("strategy"), strategy, &["None", "Webhook"], errors);
    let config = conversion.at(&["webhook", "clientConfig"]);
    let versions = reviews(object);
    let (config_path, versions_path) = (path.child("webhookClientConfig"), path.child("conversionReviewVersions"));
    if strategy != "Webhook" {
        if !config.is_null() {
            errors.forbidden(&config_path, NO_WEBHOOK);
        }
        if !versions.is_empty() {
            errors.forbidden(&versions_path, NO_WEBHOOK);
        }
        return;
    }
    let (url, service) = (config.at(&["url"]), config.at(&["service"]));
    if config.is_null() {
        errors.required(&config_path, "required when strategy is set to Webhook");
    } else if url.is_null() == service.is_null() {
        errors.required(&config_path, "exactly one of url or service is required");
    } else if let Some(url) = url.as_str() {
        webhook::validate_url(url, &config_path.child("url"), errors);
    } else {
        webhook::validate_service(service, &config_path.child("service"), errors);
    }
    if let Some(old) = old.filter(|old| !config.is_null() && is_established(old)) {
        ca_bundle::validate(object, old, &config_path, errors);
    }
    let lax = old.map(reviews).is_some_and(|old| !old.is_empty() && !is_review_known(old));
    validate_review_versions(versions, lax, &versions_path, errors);
}

fn validate_review_versions(versions: &[Value], lax: bool, path: &Path<'_>, errors: &mut Errors) {
    if versions.is_empty() {
        return errors.required(path, "");
    }
    let mut seen = HashSet::new();
    for (index, version) in versions.iter().enumerate() {
        let (path, name) = (path.index(index), version.as_str().unwrap_or(""));
        if !seen.insert(name) {
            errors.invalid(&path, version, "duplicate version");
            continue;
        }
        names::check(&path, name, names::dns1035_label, errors);
    }
    if !lax && !is_review_known(versions) {
        let why = "must include at least one of v1, v1beta1";
        errors.invalid(path, &Value::Array(versions.to_vec()), why);
    }
}
