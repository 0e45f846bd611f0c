//! ServiceAccounts.

use flotilla_proto::value::{Map, Value};

use crate::field::Errors;
use crate::printing::{Printer, config};
use crate::rules::{Generation, NameRule, Strategy, metadata};

const ENFORCE_MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";

/// Rules of TokenRequests: the default life of a token.
pub static TOKEN_REQUEST: Strategy = Strategy {
    default: |request| {
        if request.at(&["spec", "expirationSeconds"]).is_null() {
            request.set_at(&["spec", "expirationSeconds"], TOKEN_SECONDS);
        }
    },
    ..Strategy::DEFAULT
};
const TOKEN_SECONDS: i64 = 3_600;

/// Rules of ServiceAccounts.
pub static STRATEGY: Strategy = Strategy {
    name: NameRule::Subdomain,
    returns_deleted: true,
    generation: Generation::ClientOwned,
    prepare_create: |object, _| keep_names(object),
    prepare_update: |object, _, _| keep_names(object),
    validate_update,
    warnings,
    printer: Some(Printer::of(config::name_and_age)),
    ..Strategy::DEFAULT
};

/// Drops everything except the names from references to secrets.
fn keep_names(object: &mut Value) {
    let Some(secrets) = object.get_mut("secrets").and_then(Value::as_array_mut) else { return };
    for secret in secrets {
        let name = secret.str_at(&["name"]);
        let mut kept = Map::new();
        if !name.is_empty() {
            kept.insert("name", name);
        }
        *secret = kept.into();
    }
}

fn validate_update(object: &Value, _old: &Value, errors: &mut Errors) {
    metadata::validate_again(STRATEGY.name, true, object, errors);
}

fn warnings(object: &Value, old: Option<&Value>, warnings: &mut Vec<String>) {
    let has = |object: &Value| !object.at(&["metadata", "annotations", ENFORCE_MOUNTABLE]).is_null();
    if has(object) && !old.is_some_and(has) {
        let why = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets";
        warnings.push(format!("metadata.annotations[{ENFORCE_MOUNTABLE}]: {why}"));
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn references_keep_their_names_only() {
        let mut account = value!({"secrets": [{"kind": "Secret", "name": "a"}, {"uid": "x"}]});
        keep_names(&mut account);
        assert_eq!(account, value!({"secrets": [{"name": "a"}, {}]}));
    }
}
