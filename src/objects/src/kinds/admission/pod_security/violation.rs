//! The view of a pod that the checks use, and the violations that they return.

use std::collections::BTreeSet;

use flotilla_proto::value::Value;

/// A violation: a property of a pod that its standard does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The violation in a few words.
    pub reason: String,
    /// The containers and fields that violate, and their values.
    pub detail: String,
}

impl Violation {
    pub(super) fn new(reason: impl Into<String>, detail: impl Into<String>) -> Option<Self> {
        Some(Self { reason: reason.into(), detail: detail.into() })
    }
}

/// The metadata and spec of a pod or of a pod template.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pod<'a> {
    pub(super) metadata: &'a Value,
    pub(super) spec: &'a Value,
}

impl<'a> Pod<'a> {
    /// Returns all init, ordinary and ephemeral containers.
    pub(super) fn containers(self) -> impl Iterator<Item = &'a Value> {
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        lists.into_iter().flat_map(move |list| self.spec.list_at(&[list]))
    }

    /// Returns the names of the containers for which `holds` is true.
    pub(super) fn names(self, mut holds: impl FnMut(&'a Value) -> bool) -> Vec<&'a str> {
        self.containers().filter(|container| holds(container)).map(|container| container.str_at(&["name"])).collect()
    }

    /// Returns a field of the pod's security context.
    pub(super) fn security(self, field: &str) -> &'a Value {
        self.spec.at(&["securityContext", field])
    }

    pub(super) fn annotation(self, key: &str) -> Option<&'a str> {
        self.metadata.at(&["annotations", key]).as_str()
    }

    pub(super) fn is_windows(self) -> bool {
        self.spec.str_at(&["os", "name"]) == "windows"
    }

    /// Returns whether the pod has a user namespace of its own, so that root inside has no privileges on the host.
    pub(super) fn has_own_users(self) -> bool {
        self.spec.at(&["hostUsers"]).as_bool() == Some(false)
    }
}

/// Returns a field of a container's security context.
pub(super) fn security<'a>(container: &'a Value, field: &str) -> &'a Value {
    container.at(&["securityContext", field])
}

/// Returns `container "a"`, or `containers "a", "b"`.
pub(super) fn containers(names: &[&str]) -> String {
    format!("{} {}", plural("container", names.len()), quoted(names.iter()))
}

/// Returns a word, with an `s` unless `count` is 1.
pub(super) fn plural(word: &str, count: usize) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

pub(super) fn quoted<T: AsRef<str>>(texts: impl Iterator<Item = T>) -> String {
    texts.map(|text| format!("\"{}\"", text.as_ref())).collect::<Vec<_>>().join(", ")
}

/// Names the parts that set a field: the pod, containers, or both. `None` if neither does.
pub(super) fn setters(pod: bool, names: &[&str]) -> Option<String> {
    let mut who = Vec::new();
    if pod {
        who.push("pod".to_owned());
    }
    if !names.is_empty() {
        who.push(containers(names));
    }
    (!who.is_empty()).then(|| who.join(" and "))
}

/// The forbidden values of a field, sorted and without duplicates, and the parts of the pod that set them.
#[derive(Debug, Default)]
pub(super) struct ForbiddenValues<'a> {
    pub(super) values: BTreeSet<&'a str>,
    pub(super) pod: bool,
    pub(super) names: Vec<&'a str>,
}

impl<'a> ForbiddenValues<'a> {
    /// Collects the forbidden `type`s of an object `field` in the security contexts of the pod and its containers.
    pub(super) fn types(pod: Pod<'a>, field: &str, allowed: impl Fn(&str) -> bool) -> Self {
        let mut values = BTreeSet::new();
        let mut is_bad = |profile: &'a Value| {
            let kind = profile.str_at(&["type"]);
            let bad = !profile.is_null() && !allowed(kind);
            if bad {
                values.insert(kind);
            }
            bad
        };
        let of_pod = is_bad(pod.security(field));
        let names = pod.names(|container| is_bad(security(container, field)));
        Self { values, pod: of_pod, names }
    }
}
