//! Pod Security Standards: the levels that namespaces demand of their pods by labels, and the checks of each level
//! ("Pod Security Admission", "Pod Security Standards"; KEP-2579).

mod baseline;
mod restricted;
mod settings;
mod violation;

use std::fmt;

use flotilla_proto::value::Value;

pub use settings::Settings;
use violation::Pod;
pub use violation::Violation;

use crate::field::{Errors, Path};

/// The newest minor version of Kubernetes in which a check changed; later versions use the same checks.
const NEWEST: u32 = 35;
/// Prefix of the labels of a namespace that state its standards.
const PREFIX: &str = "pod-security.kubernetes.io/";
const WRONG_LEVEL: &str = "must be one of privileged, baseline, restricted";
const WRONG_VERSION: &str = "must be \"latest\" or \"v1.x\"";

/// A level of the standards, ordered from the most to the least permissive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Allows everything.
    Privileged,
    /// Forbids known ways to raise privileges.
    Baseline,
    /// Demands the present best practices for hardening pods.
    Restricted,
}

/// The version of Kubernetes whose definition of a level applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyVersion {
    /// The newest version.
    Latest,
    /// 1.x.
    Minor(u32),
}

/// A level, as a version of Kubernetes defines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standard {
    /// The level.
    pub level: Level,
    /// The version.
    pub version: PolicyVersion,
}

/// The standards that a namespace demands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Policy {
    /// Pods that do not meet it are refused.
    pub enforce: Standard,
    /// Pods that do not meet it are noted in the audit log.
    pub audit: Standard,
    /// Clients that create pods, or templates of pods, that do not meet it get a warning.
    pub warn: Standard,
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.version {
            PolicyVersion::Latest => write!(f, "{level}:latest"),
            PolicyVersion::Minor(minor) => write!(f, "{level}:v1.{minor}"),
        }
    }
}

impl Default for Standard {
    fn default() -> Self {
        Self { level: Level::Privileged, version: PolicyVersion::Latest }
    }
}

impl Standard {
    /// Returns whether two standards demand the same of pods.
    fn is_equivalent(self, other: Self) -> bool {
        self == other || (self.level == Level::Privileged && other.level == Level::Privileged)
    }
}

impl Policy {
    /// Reads the standards from the labels of a namespace, which `label` looks up by key; adds an error for each label
    /// that cannot be parsed.
    pub fn read<'l>(self, label: impl Fn(&str) -> Option<&'l str>, errors: &mut Errors) -> Self {
        let path = Path::root("metadata.labels");
        let mut wrong = |key: &str, text: &str, why: &str| errors.invalid_str(&path.key(key), text, why);
        let mut read = |mode: &str, mut standard: Standard, fallback: Level| {
            let (key, version_key) = (format!("{PREFIX}{mode}"), format!("{PREFIX}{mode}-version"));
            let level = label(&key).map(|text| {
                let level = Level::parse(text);
                if level.is_none() {
                    wrong(&key, text, WRONG_LEVEL);
                }
                level
            });
            if let Some(level) = level {
                standard.level = level.unwrap_or(fallback);
            }
            let version = label(&version_key);
            if let Some(text) = version {
                standard.version = PolicyVersion::parse(text).unwrap_or_else(|| {
                    wrong(&version_key, text, WRONG_VERSION);
                    PolicyVersion::Latest
                });
            }
            (standard, level, version.is_some())
        };
        let (enforce, enforced, _) = read("enforce", self.enforce, Level::Restricted);
        let (audit, _, _) = read("audit", self.audit, Level::Privileged);
        let (mut warn, warned, versioned) = read("warn", self.warn, Level::Privileged);
        if warned.is_none() && matches!(enforced, Some(Some(_))) && enforce.level > warn.level {
            warn.level = enforce.level;
            if !versioned {
                warn.version = enforce.version;
            }
        }
        Self { enforce, audit, warn }
    }

    /// Returns whether no standard demands anything of pods.
    pub fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|standard| standard.level == Level::Privileged)
    }

    /// Returns whether two policies demand the same of pods.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        self.enforce.is_equivalent(other.enforce)
            && self.audit.is_equivalent(other.audit)
            && self.warn.is_equivalent(other.warn)
    }

    /// Returns the standards that the labels of a namespace state and that demand something, as
    /// `enforce=baseline:latest, warn=restricted:latest`.
    pub fn stated<'l>(&self, label: impl Fn(&str) -> Option<&'l str>) -> String {
        let modes = [("enforce", self.enforce), ("audit", self.audit), ("warn", self.warn)];
        let is_stated = |mode: &str| {
            let key = format!("{PREFIX}{mode}");
            label(&key).is_some() || label(&format!("{key}-version")).is_some()
        };
        let stated = modes.iter().filter(|(mode, of)| of.level != Level::Privileged && is_stated(mode));
        stated.map(|(mode, of)| format!("{mode}={of}")).collect::<Vec<_>>().join(", ")
    }
}

impl Level {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "privileged" => Self::Privileged,
            "baseline" => Self::Baseline,
            "restricted" => Self::Restricted,
            _ => return None,
        })
    }
}

impl PolicyVersion {
    fn parse(text: &str) -> Option<Self> {
        if text == "latest" {
            return Some(Self::Latest);
        }
        let minor = text.strip_prefix("v1.")?;
        let plain = minor == "0" || !minor.starts_with('0') && minor.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| minor.parse().ok()).flatten().map(Self::Minor)
    }

    fn minor(self) -> u32 {
        match self {
            Self::Latest => NEWEST,
            Self::Minor(minor) => minor.min(NEWEST),
        }
    }
}

/// A check: takes a pod and the minor version of the standard, and returns the violation, or `None`.
type Check = fn(&Pod<'_>, u32) -> Option<Violation>;

/// Checks of the level `baseline` in order. From the given version on, a stricter check of `restricted` replaces the
/// check at that level.
static BASELINE: &[(Check, Option<u32>)] = &[
    (baseline::app_armor, None),
    (baseline::capabilities, Some(22)),
    (baseline::host_namespaces, None),
    (baseline::host_paths, Some(0)),
    (baseline::host_ports, None),
    (baseline::probe_hosts, None),
    (baseline::privileged, None),
    (baseline::proc_mount, Some(35)),
    (baseline::se_linux, None),
    (baseline::seccomp, Some(19)),
    (baseline::sysctls, None),
    (baseline::windows_host_process, None),
];

/// Further checks of the level `restricted` in order, each with the minor version that introduced it.
static RESTRICTED: &[(Check, u32)] = &[
    (restricted::privilege_escalation, 8),
    (restricted::capabilities, 22),
    (restricted::proc_mount, 35),
    (restricted::volumes, 0),
    (restricted::run_as_non_root, 0),
    (restricted::run_as_user, 23),
    (restricted::seccomp, 19),
];

/// Returns all violations of a standard by a pod.
pub fn violations(standard: Standard, metadata: &Value, spec: &Value) -> Vec<Violation> {
    let (pod, version) = (Pod { metadata, spec }, standard.version.minor());
    let restricted = standard.level == Level::Restricted;
    if standard.level == Level::Privileged {
        return Vec::new();
    }
    let stands = |since: &Option<u32>| !(restricted && since.is_some_and(|since| version >= since));
    let baseline = BASELINE.iter().filter(|(_, replaced)| stands(replaced)).map(|(check, _)| check);
    let more = RESTRICTED.iter().filter(|(_, since)| restricted && version >= *since).map(|(check, _)| check);
    baseline.chain(more).filter_map(|check| check(&pod, version)).collect()
}

/// Formats violations with their details, for refusals and warnings.
pub fn in_detail(violations: &[Violation]) -> String {
    let texts: Vec<String> =
        violations.iter().map(|violation| format!("{} ({})", violation.reason, violation.detail)).collect();
    texts.join(", ")
}

/// Formats violations without details, for a warning about many pods.
pub fn in_short(violations: &[Violation]) -> String {
    let texts: Vec<&str> = violations.iter().map(|violation| violation.reason.as_str()).collect();
    texts.join(", ")
}

/// Returns whether an update of a pod must be checked again: the images of its containers changed, or an ephemeral
/// container is new or has another image.
pub fn is_significant(pod: &Value, old: &Value) -> bool {
    let list = |pod: &'_ Value, list: &str| -> Vec<(String, String)> {
        let text = |container: &Value, field: &str| container.str_at(&[field]).to_owned();
        pod.list_at(&["spec", list]).iter().map(|each| (text(each, "name"), text(each, "image"))).collect()
    };
    let images = |pod: &Value, name: &str| list(pod, name).into_iter().map(|(_, image)| image).collect::<Vec<_>>();
    let debuggers = list(old, "ephemeralContainers");
    ["containers", "initContainers"].iter().any(|name| images(pod, name) != images(old, name))
        || list(pod, "ephemeralContainers").iter().any(|each| !debuggers.contains(each))
}

#[cfg(test)]
#[path = "pod_security_tests.rs"]
mod tests;
