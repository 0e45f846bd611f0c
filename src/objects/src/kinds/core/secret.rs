//! Secrets: `stringData`, the keys that each type requires, and `immutable`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flotilla_proto::json;
use flotilla_proto::value::{Map, Value};

use super::configmap::{DATA_BYTES_MAX, decoded_len, validate_frozen};
use crate::field::{Errors, Path};
use crate::printing::{Printer, config};
use crate::rules::{Generation, NameRule, Strategy, key_pair, metadata, names};

const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const REDACTED: &str = "<secret contents redacted>";

/// Rules of Secrets.
pub static STRATEGY: Strategy = Strategy {
    name: NameRule::Subdomain,
    generation: Generation::ClientOwned,
    default,
    validate,
    validate_update,
    warnings,
    selectable: &[("type", |object| object.str_at(&["type"]).to_owned())],
    printer: Some(Printer::of(config::secret)),
    ..Strategy::DEFAULT
};

/// Moves `stringData` into `data`, and sets the default type.
fn default(object: &mut Value) {
    let Some(map) = object.as_object_mut() else { return };
    if let Some(Value::Object(texts)) = map.remove("stringData")
        && !texts.is_empty()
    {
        let data = map.entry("data");
        if !matches!(data, Value::Object(_)) {
            *data = Value::object();
        }
        if let Value::Object(data) = data {
            for (key, text) in texts {
                data.insert(key, STANDARD.encode(text.as_str().unwrap_or("").as_bytes()));
            }
            data.sort();
        }
    }
    if map.get("type").and_then(Value::as_str).unwrap_or("").is_empty() {
        map.insert("type", "Opaque");
    }
}

fn validate(object: &Value, errors: &mut Errors) {
    let path = Path::root("data");
    let empty = Map::new();
    let data = object.map_at(&["data"]).unwrap_or(&empty);
    let mut total = 0;
    for (key, value) in data.iter() {
        names::check(&path.key(key), key, names::config_map_key, errors);
        total += decoded_len(value);
    }
    if total > DATA_BYTES_MAX {
        errors.too_long(&path, DATA_BYTES_MAX);
    }
    let mut require = |key: &str| {
        if !data.contains_key(key) {
            errors.required(&path.key(key), "");
        }
    };
    match object.str_at(&["type"]) {
        "kubernetes.io/service-account-token"
            if object.str_at(&["metadata", "annotations", SERVICE_ACCOUNT_NAME]).is_empty() =>
        {
            errors.required(&Path::root("metadata.annotations").key(SERVICE_ACCOUNT_NAME), "");
        }
        "kubernetes.io/dockercfg" => validate_json(data, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => validate_json(data, ".dockerconfigjson", errors),
        "kubernetes.io/basic-auth" if !data.contains_key("username") && !data.contains_key("password") => {
            require("username");
            require("password");
        }
        "kubernetes.io/ssh-auth" if data.get("ssh-privatekey").is_none_or(|key| decoded_len(key) == 0) => {
            errors.required(&path.key("ssh-privatekey"), "");
        }
        "kubernetes.io/tls" => {
            require("tls.crt");
            require("tls.key");
        }
        _ => {}
    }
}

fn validate_json(data: &Map, key: &str, errors: &mut Errors) {
    let path = Path::root("data");
    let Some(value) = data.get(key) else {
        errors.required(&path.key(key), "");
        return;
    };
    let text = STANDARD.decode(value.as_str().unwrap_or("")).unwrap_or_default();
    match json::parse(&text) {
        Ok(Value::Object(_) | Value::Null) => {}
        Ok(other) => {
            let why =
                format!("json: cannot unmarshal {} into Go value of type map[string]interface {{}}", other.type_name());
            errors.invalid_str(&path.key(key), REDACTED, why);
        }
        Err(error) => errors.invalid_str(&path.key(key), REDACTED, error.to_string()),
    }
}

fn validate_update(object: &Value, old: &Value, errors: &mut Errors) {
    metadata::immutable(&Path::root("type"), object.at(&["type"]), old.at(&["type"]), errors);
    validate_frozen(object, old, &["data"], errors);
    metadata::validate_again(STRATEGY.name, true, object, errors);
    validate(object, errors);
}

fn warnings(object: &Value, _old: Option<&Value>, warnings: &mut Vec<String>) {
    if object.str_at(&["type"]) == "kubernetes.io/tls" {
        let part = |key: &str| STANDARD.decode(object.str_at(&["data", key])).unwrap_or_default();
        if let Err(error) = key_pair::check(&part("tls.crt"), &part("tls.key")) {
            warnings.push(error.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn broken(object: &Value) -> Vec<String> {
        let mut errors = Errors::default();
        validate(object, &mut errors);
        errors.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn text_becomes_data() {
        let mut secret = value!({"data": {"k": "dg=="}, "stringData": {"k": "over", "a": "text"}});
        default(&mut secret);
        assert_eq!(secret, value!({"data": {"a": "dGV4dA==", "k": "b3Zlcg=="}, "type": "Opaque"}));
    }

    #[test]
    fn types_need_their_keys() {
        assert_eq!(
            broken(&value!({"type": "kubernetes.io/basic-auth"})),
            ["data[username]: Required value", "data[password]: Required value"]
        );
        assert!(broken(&value!({"type": "kubernetes.io/basic-auth", "data": {"password": ""}})).is_empty());
        assert_eq!(
            broken(&value!({"type": "kubernetes.io/dockercfg", "data": {".dockercfg": "bm90IGpzb24="}})),
            [
                "data[.dockercfg]: Invalid value: \"<secret contents redacted>\": invalid character 'o' in literal null (expecting 'u')"
            ]
        );
        assert_eq!(broken(&value!({"type": "kubernetes.io/tls", "data": {"tls.crt": ""}})).len(), 1);
        assert_eq!(broken(&value!({"type": "kubernetes.io/service-account-token"})).len(), 1);
        assert!(broken(&value!({"type": "anything"})).is_empty());
    }
}
