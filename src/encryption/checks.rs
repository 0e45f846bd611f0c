//! Checks the form of an `EncryptionConfiguration`, as strictly as kube-apiserver: a misspelled provider would leave
//! everything unencrypted.

use std::collections::BTreeSet;

use flotilla_proto::value::Value;

use super::kms::KmsPlugin;
use super::secret_key::Provider;
use super::{IDENTITY, KMS};

const KIND: &str = "EncryptionConfiguration";
const API_VERSION: &str = "apiserver.config.k8s.io/v1";
/// The first name of the kind, which kube-apiserver still takes.
const FORMER_KIND: &str = "EncryptionConfig";
const FORMER_API_VERSION: &str = "v1";

/// Checks that this is a configuration of encryption.
pub(super) fn check_kind(root: &Value) -> Result<(), String> {
    match [KIND, FORMER_KIND].contains(&root.str_at(&["kind"])) {
        true => Ok(()),
        false => Err(format!("its kind is not {KIND}")),
    }
}

/// Checks a configuration. The error names the field and its fault.
pub(super) fn check(root: &Value) -> Result<(), String> {
    check_kind(root)?;
    let version = if root.str_at(&["kind"]) == KIND { API_VERSION } else { FORMER_API_VERSION };
    if root.str_at(&["apiVersion"]) != version {
        return Err(format!("its apiVersion is not {version}"));
    }
    only(root, "the configuration", &["apiVersion", "kind", "resources"])?;
    let rules = root.list_at(&["resources"]);
    if rules.is_empty() {
        return Err("it names no resources".to_owned());
    }
    let mut plugins = BTreeSet::new();
    for (index, rule) in rules.iter().enumerate() {
        let place = format!("resources[{index}]");
        only(rule, &place, &["resources", "providers"])?;
        for list in ["resources", "providers"] {
            if rule.list_at(&[list]).is_empty() {
                return Err(format!("{place} has no {list}"));
            }
        }
        for (position, provider) in rule.list_at(&["providers"]).iter().enumerate() {
            let place = format!("{place}.providers[{position}]");
            check_provider(provider, &place)?;
            if let Some(plugin) = provider.get(KMS)
                && !plugins.insert(plugin.str_at(&["name"]).to_owned())
            {
                return Err(format!("{place} has a name that another provider kms has"));
            }
        }
    }
    Ok(())
}

fn check_provider(provider: &Value, place: &str) -> Result<(), String> {
    let names = Provider::ALL.iter().map(|(name, _)| *name).chain([IDENTITY, KMS]).collect::<Vec<_>>();
    only(provider, place, &names)?;
    let stated = names.iter().filter(|name| provider.get(name).is_some_and(|value| !value.is_null()));
    let [name] = stated.collect::<Vec<_>>()[..] else {
        return Err(format!("{place} must be one of {}", names.join(", ")));
    };
    let content = provider.at(&[name]);
    match *name {
        IDENTITY => only(content, place, &[]),
        KMS => {
            only(content, place, &["apiVersion", "name", "endpoint", "timeout"])?;
            if content.get("timeout").is_some_and(|timeout| timeout.as_str().is_none_or(str::is_empty)) {
                return Err(format!("{place}.kms has a timeout that is no text, as in 3s"));
            }
            KmsPlugin::of(content).map(drop).map_err(|why| format!("{place}.kms {why}"))
        }
        _ => {
            only(content, place, &["keys"])?;
            let keys = content.list_at(&["keys"]);
            if keys.is_empty() {
                return Err(format!("{place} has no keys"));
            }
            keys.iter().try_for_each(|key| only(key, place, &["name", "secret"]))
        }
    }
}

/// Checks that a value is an object with no other than these fields.
fn only(value: &Value, place: &str, fields: &[&str]) -> Result<(), String> {
    let Some(members) = value.as_object() else { return Err(format!("{place} is no object")) };
    let unknown = members.iter().map(|(name, _)| name).find(|name| !fields.contains(name));
    unknown.map_or(Ok(()), |name| Err(format!("{place} has the unknown field {name:?}")))
}
