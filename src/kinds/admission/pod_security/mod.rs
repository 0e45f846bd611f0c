//! What namespaces demand of their pods ("Pod Security Admission", "Pod Security Standards"; KEP-2579).

mod baseline;
mod finding;
mod restricted;

use std::fmt;

use flotilla_proto::value::Value;

pub use finding::Finding;
use finding::Pod;

use crate::field::{Errors, Path};

/// Newest version of Kubernetes in which a check changed; later ones are judged alike.
const NEWEST: u32 = 35;
/// Labels of a namespace begin with it.
const PREFIX: &str = "pod-security.kubernetes.io/";

/// How much is allowed, from most to least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Everything.
    Privileged,
    /// What cannot raise privileges in known ways.
    Baseline,
    /// What follows the present best practice.
    Restricted,
}

/// The version of Kubernetes as of which a level is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// This one.
    Latest,
    /// 1.x.
    Minor(u32),
}

/// A level as of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standard {
    /// The level.
    pub level: Level,
    /// The version.
    pub version: Version,
}

/// What a namespace demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Pods that do not meet it are refused.
    pub enforce: Standard,
    /// Whoever creates pods, or templates of pods, that do not meet it is told.
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
            Version::Latest => write!(f, "{level}:latest"),
            Version::Minor(minor) => write!(f, "{level}:v1.{minor}"),
        }
    }
}

impl Policy {
    /// Reads the labels of a namespace, looked up by key; adds an error for each that cannot be understood.
    pub fn read<'l>(label: impl Fn(&str) -> Option<&'l str>, errors: &mut Errors) -> Self {
        let privileged = Standard { level: Level::Privileged, version: Version::Latest };
        let path = Path::root("metadata.labels");
        let mut wrong = |key: &str, text: &str, why: &str| errors.invalid_str(&path.key(key), text, why);
        let mut read = |mode: &str, fallback: Level| {
            let mut standard = privileged;
            let (key, version_key) = (format!("{PREFIX}{mode}"), format!("{PREFIX}{mode}-version"));
            let level = label(&key).map(|text| {
                let level = Level::parse(text);
                if level.is_none() {
                    wrong(&key, text, "must be one of privileged, baseline, restricted");
                }
                level
            });
            if let Some(level) = level {
                standard.level = level.unwrap_or(fallback);
            }
            let version = label(&version_key);
            if let Some(text) = version {
                standard.version = Version::parse(text).unwrap_or_else(|| {
                    wrong(&version_key, text, "must be \"latest\" or \"v1.x\"");
                    Version::Latest
                });
            }
            (standard, level, version.is_some())
        };
        let (enforce, enforced, _) = read("enforce", Level::Restricted);
        // What is audited is not told to anybody, but must be understood.
        read("audit", Level::Privileged);
        let (mut warn, warned, versioned) = read("warn", Level::Privileged);
        if warned.is_none() && matches!(enforced, Some(Some(_))) && enforce.level > warn.level {
            warn.level = enforce.level;
            if !versioned {
                warn.version = enforce.version;
            }
        }
        Self { enforce, warn }
    }

    /// Whether nothing is demanded.
    pub fn is_privileged(&self) -> bool {
        self.enforce.level == Level::Privileged && self.warn.level == Level::Privileged
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

impl Version {
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

/// Looks at a pod as of a minor version.
type Check = fn(&Pod<'_>, u32) -> Option<Finding>;

/// Checks of the level `baseline` in order, and from which version on one of `restricted` stands for them there.
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

/// Further checks of the level `restricted` in order, and the version since which there is one.
static RESTRICTED: &[(Check, u32)] = &[
    (restricted::privilege_escalation, 8),
    (restricted::capabilities, 22),
    (restricted::proc_mount, 35),
    (restricted::volumes, 0),
    (restricted::run_as_non_root, 0),
    (restricted::run_as_user, 23),
    (restricted::seccomp, 19),
];

/// What of a pod does not meet a standard.
pub fn findings(standard: Standard, metadata: &Value, spec: &Value) -> Vec<Finding> {
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

/// Findings with their details, as refusals and warnings tell them.
pub fn in_detail(findings: &[Finding]) -> String {
    let told: Vec<String> = findings.iter().map(|finding| format!("{} ({})", finding.reason, finding.detail)).collect();
    told.join(", ")
}

/// Findings without details, as they are told of many pods at once.
pub fn in_short(findings: &[Finding]) -> String {
    let told: Vec<&str> = findings.iter().map(|finding| finding.reason.as_str()).collect();
    told.join(", ")
}

/// Whether a change of a pod is one that its standard is to be looked at again for: other containers, or images.
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
