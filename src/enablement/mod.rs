//! The setting `--runtime-config`: which of the built-in APIs are served (Kubernetes documentation, "Enabling or
//! disabling API groups").

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use flotilla_golang::strconv::{self, quote};
use flotilla_proto::catalogue;
use serde::{Deserialize, Serialize};

use crate::text_options::as_text;

/// The classes of versions, as settings name them; later ones take precedence.
const CLASSES: [(&str, Class); 4] =
    [("api/all", Class::All), ("api/ga", Class::Stable), ("api/beta", Class::Beta), ("api/alpha", Class::Alpha)];

/// The stability of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    All,
    Stable,
    Beta,
    Alpha,
}

impl Class {
    /// Returns whether a version such as `v1beta2` is of this class.
    fn has(self, version: &str) -> bool {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let Some(rest) = version.strip_prefix('v') else { return self == Self::All };
        let word =
            |word: &str| rest.split_once(word).is_some_and(|(major, minor)| is_number(major) && is_number(minor));
        match self {
            Self::All => true,
            Self::Stable => is_number(rest),
            Self::Beta => word("beta"),
            Self::Alpha => word("alpha"),
        }
    }
}

/// Which built-in APIs are switched on and off. Of all others the stable versions are on, as in Kubernetes 1.36.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Enablement {
    /// The settings, by their keys.
    said: BTreeMap<String, String>,
    classes: Vec<(Class, bool)>,
    /// Switches by group and version.
    versions: BTreeMap<(String, String), bool>,
    /// Switches by group, version and plural name.
    resources: BTreeMap<(String, String, String), bool>,
}

/// The reason why settings are invalid, in the words of kube-apiserver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnablementError {
    /// Nothing would be served.
    #[error("invalid runtime-config with only api/all=false")]
    Nothing,
    /// A key cannot be that of an API.
    #[error("runtime-config invalid key {0}")]
    Key(String),
    /// No built-in API has such a group.
    #[error("unknown api groups {0}")]
    Groups(String),
    /// The group has no such version.
    #[error("group version {0} that has not been registered")]
    Version(String),
    /// A resource is not in lower case.
    #[error("invalid key {0}: group/version/resource and resource is always lowercase plural, not {resource}", resource = quote(.1))]
    Resource(String, String),
    /// The value of a class of versions is neither true nor false.
    #[error("invalid value {0}={1}")]
    Class(String, String),
    /// A value is not a truth value.
    #[error("invalid value of {0}: {1}, err: {2}")]
    Value(String, String, String),
}

/// Returns the group versions in which Kubernetes has kinds, served or not, with groups as API versions name them.
pub fn registered() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = include_str!("group_versions.txt").lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let group = words.next().filter(|group| *group != "core").unwrap_or_default();
        words.map(move |version| (group, version))
    })
}

impl Enablement {
    /// Returns whether a built-in resource is served.
    pub fn serves(&self, group: &str, version: &str, resource: &str) -> bool {
        match self.resources.get(&(group.to_owned(), version.to_owned(), resource.to_owned())) {
            Some(on) => *on,
            None => self.serves_version(group, version),
        }
    }

    /// Returns whether any resource of a built-in group version is served.
    pub fn serves_any(&self, group: &str, version: &str) -> bool {
        let mut resources = self.resources.iter();
        self.serves_version(group, version)
            || resources.any(|((of, at, _), on)| *on && (of.as_str(), at.as_str()) == (group, version))
    }

    fn serves_version(&self, group: &str, version: &str) -> bool {
        let own = self.versions.get(&(group.to_owned(), version.to_owned())).copied();
        let of_class = || self.classes.iter().rfind(|(class, _)| class.has(version)).map(|(_, on)| *on);
        // Versions that are not stable are off by default.
        own.or_else(of_class).unwrap_or_else(|| Class::Stable.has(version))
    }

    /// Returns the setting that disables an API on which priority and fairness depends. `None` if no setting does.
    pub fn takes_priorities(&self) -> Option<&str> {
        let decides = ["flowcontrol.apiserver.k8s.io/v1", "api/ga", "api/all"];
        let said = |key: &&str| matches!(self.said.get(*key).map(String::as_str), Some("true" | "false"));
        decides.into_iter().find(said).filter(|key| self.said[*key] == "false")
    }

    /// Returns the keys that switch on what this server does not have. Kubernetes 1.36 serves it only with a feature
    /// gate, or not at all.
    pub fn absent(&self) -> impl Iterator<Item = &str> {
        let on = |text: &str| text.is_empty() || strconv::parse_bool(text) == Ok(true);
        let is_here = |key: &str| match key.split('/').collect::<Vec<_>>()[..] {
            ["api", _] => true,
            [group, version, ref resource @ ..] => {
                let here = |of: &flotilla_proto::schema::Resource| {
                    (&*of.group, &*of.version) == (group, version) && resource.iter().all(|name| of.name == **name)
                };
                catalogue::resources().any(here)
            }
            _ => false,
        };
        self.said.iter().filter(move |(key, value)| on(value) && !is_here(key)).map(|(key, _)| key.as_str())
    }

    /// Applies the setting of one version, or of one of its resources.
    fn set(&mut self, key: &str, value: &str) -> Result<(), EnablementError> {
        let mut parts = key.split('/').map(str::to_owned);
        let (Some(group), Some(version)) = (parts.next(), parts.next()) else {
            return Err(EnablementError::Key(key.to_owned()));
        };
        if !registered().any(|known| known == (group.as_str(), version.as_str())) {
            let named = if group.is_empty() { version } else { format!("{group}/{version}") };
            return Err(EnablementError::Version(named));
        }
        let parsed = if value.is_empty() { Ok(true) } else { strconv::parse_bool(value) };
        let wrong =
            |error: strconv::NumberError| EnablementError::Value(key.to_owned(), value.to_owned(), error.to_string());
        let on = parsed.map_err(wrong)?;
        match parts.next() {
            None => self.versions.insert((group, version), on),
            Some(resource) if resource.to_lowercase() != resource => {
                return Err(EnablementError::Resource(key.to_owned(), resource));
            }
            Some(resource) => self.resources.insert((group, version, resource), on),
        };
        Ok(())
    }
}

/// Replaces a former name of the core group's version by the present one.
fn former(key: &str) -> &str {
    match key.strip_prefix("api/").unwrap_or(key) {
        core if core == "v1" || core.starts_with("v1/") => "/v1",
        _ => key,
    }
}

/// Checks that each setting can be that of a built-in API.
fn check(said: &BTreeMap<&str, &str>) -> Result<(), EnablementError> {
    if said.len() == 1 && said.get("api/all") == Some(&"false") {
        return Err(EnablementError::Nothing);
    }
    let mut unknown = BTreeSet::new();
    for key in said.keys().filter(|key| !CLASSES.iter().any(|(name, _)| name == *key)) {
        let (Some((group, rest)), 1..=2) = (key.split_once('/'), key.matches('/').count()) else {
            return Err(EnablementError::Key((*key).to_owned()));
        };
        let version = rest.split('/').next().unwrap_or_default();
        if !registered().any(|(known, _)| known == group) {
            unknown.insert(format!("{group}/{version}"));
        }
    }
    match unknown.is_empty() {
        true => Ok(()),
        false => Err(EnablementError::Groups(unknown.into_iter().collect::<Vec<_>>().join(","))),
    }
}

impl FromStr for Enablement {
    type Err = EnablementError;

    fn from_str(text: &str) -> Result<Self, EnablementError> {
        let pairs = text.split(',').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let pairs = pairs.map(|(key, value)| (key.trim(), value.trim())).filter(|(key, _)| *key != "api/legacy");
        let said: BTreeMap<&str, &str> = pairs.map(|(key, value)| (former(key), value)).collect();
        check(&said)?;
        let mut enablement = Self::default();
        for (name, class) in CLASSES {
            match said.get(name).copied() {
                None => {}
                Some("true") => enablement.classes.push((class, true)),
                Some("false") => enablement.classes.push((class, false)),
                Some(other) => return Err(EnablementError::Class(name.to_owned(), other.to_owned())),
            }
        }
        for (key, value) in &said {
            if !CLASSES.iter().any(|(name, _)| name == key) {
                enablement.set(key, value)?;
            }
        }
        enablement.said = said.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Ok(enablement)
    }
}

impl fmt::Display for Enablement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (key, value)) in self.said.iter().enumerate() {
            write!(f, "{}{key}={value}", if number == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

as_text!(Enablement);

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &str) -> Enablement {
        text.parse().unwrap()
    }

    #[test]
    fn the_last_and_most_specific_setting_counts() {
        let none = given("");
        assert!(none.serves("apps", "v1", "deployments") && none.serves_any("", "v1"));
        let some = given("api/all=false,apps/v1=true,batch/v1/jobs=true,/v1=1");
        assert!(some.serves("apps", "v1", "deployments") && some.serves("", "v1", "pods"));
        assert!(some.serves("batch", "v1", "jobs") && !some.serves("batch", "v1", "cronjobs"));
        assert!(some.serves_any("batch", "v1") && !some.serves_any("policy", "v1"));
        assert!(
            !none.serves_any("resource.k8s.io", "v1beta2")
                && given("api/all=true").serves_any("resource.k8s.io", "v1beta2")
        );
        let beta =
            given("api/beta=true,resource.k8s.io/v1beta1=false,coordination.k8s.io/v1alpha2/leasecandidates=true");
        assert!(beta.serves_any("resource.k8s.io", "v1beta2") && !beta.serves_any("resource.k8s.io", "v1beta1"));
        assert!(
            beta.serves("coordination.k8s.io", "v1alpha2", "leasecandidates")
                && !beta.serves_any("resource.k8s.io", "v1alpha3")
        );
        let most = given("apps/v1/deployments=false, autoscaling/v1=false");
        assert!(!most.serves("apps", "v1", "deployments") && most.serves("apps", "v1", "daemonsets"));
        assert!(most.serves_any("autoscaling", "v2") && !most.serves_any("autoscaling", "v1"));
        assert!(!given("v1=false").serves("", "v1", "pods") && !given("api/v1=false").serves_any("", "v1"));
        assert_eq!(given("api/legacy=false"), given(""));
        assert!(given("api/all=false,api/ga=true").serves_any("apps", "v1"));
        assert!(given("api/beta=false,api/alpha=false").serves_any("apps", "v1"));
        assert_eq!(most.to_string().parse(), Ok(most));
    }

    #[test]
    fn known_versions_without_a_server_are_recognized() {
        let absent = |text: &str| given(text).absent().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(absent("api/all=true,api/beta=true,resource.k8s.io/v1beta1=true"), [""; 0]);
        assert_eq!(absent("api/ga=true,apps/v1=true,apps/v1/deployments,/v1=true"), [""; 0]);
        let asked = "certificates.k8s.io/v1beta1=true,storagemigration.k8s.io/v1beta1=false,apps/v1/none=true";
        assert_eq!(absent(asked), ["apps/v1/none", "certificates.k8s.io/v1beta1"]);
    }

    #[test]
    fn malformed_settings_get_the_errors_of_kube_apiserver() {
        for (text, words) in [
            ("api/all=false", "invalid runtime-config with only api/all=false"),
            ("v2=false", "runtime-config invalid key v2"),
            ("a/b/c/d=true", "runtime-config invalid key a/b/c/d"),
            ("foo/v1=true,bar/v2/x=false", "unknown api groups bar/v2,foo/v1"),
            ("apps/v7=true", "group version apps/v7 that has not been registered"),
            ("/v7=true", "group version v7 that has not been registered"),
            ("api/beta=1", "invalid value api/beta=1"),
            ("apps/v1=x", "invalid value of apps/v1: x, err: strconv.ParseBool: parsing \"x\": invalid syntax"),
            (
                "apps/v1/Deployments=true",
                "invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase plural, \
                 not \"Deployments\"",
            ),
        ] {
            assert_eq!(text.parse::<Enablement>().unwrap_err().to_string(), words);
        }
    }
}
