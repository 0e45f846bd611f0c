//! The configuration of PodSecurity: standards of namespaces without labels, and exemptions (PodSecurityConfiguration
//! of `pod-security.admission.config.k8s.io`).

use flotilla_proto::value::Value;

use super::{Level, Policy, PolicyVersion, Standard, WRONG_LEVEL, WRONG_VERSION};
use crate::field::{Errors, Path};
use crate::rules::names;

/// The settings of the plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The standards where a namespace states none.
    pub defaults: Policy,
    users: Vec<String>,
    namespaces: Vec<String>,
    runtime_classes: Vec<String>,
}

impl Settings {
    /// Reads a configuration; adds an error for each setting that is wrong.
    pub fn read(document: &Value, errors: &mut Errors) -> Self {
        let path = Path::root("defaults");
        let mut standard = |mode: &str| {
            let text = |key: &str, default: &'static str| match document.str_at(&["defaults", key]) {
                "" => default.to_owned(),
                text => text.to_owned(),
            };
            let version_key = format!("{mode}-version");
            let (level, version) = (text(mode, "privileged"), text(&version_key, "latest"));
            if Level::parse(&level).is_none() {
                errors.invalid_str(&path.child(mode), &level, WRONG_LEVEL);
            }
            if PolicyVersion::parse(&version).is_none() {
                errors.invalid_str(&path.child(&version_key), &version, WRONG_VERSION);
            }
            Standard {
                level: Level::parse(&level).unwrap_or(Level::Restricted),
                version: PolicyVersion::parse(&version).unwrap_or(PolicyVersion::Latest),
            }
        };
        let (enforce, warn, audit) = (standard("enforce"), standard("warn"), standard("audit"));
        Self {
            defaults: Policy { enforce, audit, warn },
            namespaces: exempt(document, "namespaces", errors, |name| names::dns1123_label(name).join(", ")),
            runtime_classes: exempt(document, "runtimeClasses", errors, |name| {
                names::dns1123_subdomain(name).join(", ")
            }),
            users: exempt(document, "usernames", errors, |name| {
                if name.is_empty() { "username must not be empty".to_owned() } else { String::new() }
            }),
        }
    }

    /// Returns whether no standard is demanded in a namespace.
    pub fn exempts_namespace(&self, namespace: &str) -> bool {
        self.namespaces.iter().any(|exempt| exempt == namespace)
    }

    /// Returns whether no standard is demanded of the pods that a user writes.
    pub fn exempts_user(&self, user: &str) -> bool {
        self.users.iter().any(|exempt| exempt == user)
    }

    /// Returns whether no standard is demanded of a pod, because of its runtime class.
    pub fn exempts_pod(&self, spec: &Value) -> bool {
        let class = spec.str_at(&["runtimeClassName"]);
        self.runtime_classes.iter().any(|exempt| exempt == class)
    }
}

/// Returns the names of an exemption. `wrong` returns the fault of a name; an empty text means that the name is valid.
fn exempt(document: &Value, what: &str, errors: &mut Errors, wrong: impl Fn(&str) -> String) -> Vec<String> {
    let (root, mut found) = (Path::root("exemptions"), Vec::<String>::new());
    let list = root.child(what);
    for (at, value) in document.list_at(&["exemptions", what]).iter().enumerate() {
        let (path, name) = (list.index(at), value.as_str().unwrap_or_default());
        match wrong(name) {
            why if !why.is_empty() => errors.invalid_str(&path, name, why),
            _ if found.iter().any(|other| other == name) => errors.duplicate(&path, value),
            _ => found.push(name.to_owned()),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn defaults_and_exemptions_are_read() {
        let mut errors = Errors::default();
        let settings = Settings::read(
            &value!({
                "defaults": {"enforce": "baseline", "enforce-version": "v1.30", "warn": "restricted"},
                "exemptions": {"usernames": ["ann"], "namespaces": ["kube-system"], "runtimeClasses": ["vm"]},
            }),
            &mut errors,
        );
        assert!(errors.is_empty());
        let shown = [settings.defaults.enforce, settings.defaults.audit, settings.defaults.warn];
        assert_eq!(shown.map(|of| of.to_string()), ["baseline:v1.30", "privileged:latest", "restricted:latest"]);
        assert!(settings.exempts_user("ann") && !settings.exempts_user(""));
        assert!(settings.exempts_namespace("kube-system") && !settings.exempts_namespace("default"));
        assert!(settings.exempts_pod(&value!({"runtimeClassName": "vm"})) && !settings.exempts_pod(&value!({})));
    }

    #[test]
    fn wrong_settings_are_named() {
        let mut errors = Errors::default();
        Settings::read(
            &value!({
                "defaults": {"enforce": "strict", "audit-version": "1.2"},
                "exemptions": {"usernames": [""], "namespaces": ["A", "b", "b"]},
            }),
            &mut errors,
        );
        let paths: Vec<&str> = errors.0.iter().map(|error| error.field.as_str()).collect();
        let expected = [
            "defaults.enforce",
            "defaults.audit-version",
            "exemptions.namespaces[0]",
            "exemptions.namespaces[2]",
            "exemptions.usernames[0]",
        ];
        assert_eq!(paths, expected);
    }
}
