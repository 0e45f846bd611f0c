//! The conditions of a namespace that report the progress of its deletion.

use std::collections::BTreeMap;

use flotilla_proto::value;
use flotilla_proto::value::Value;

/// The result of one check of a namespace's content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// The number of remaining objects, by `resource.group`.
    pub remaining: BTreeMap<String, usize>,
    /// The number of objects with each finalizer.
    pub finalizers: BTreeMap<String, usize>,
    /// The errors of failed deletions.
    pub failures: Vec<String>,
}

/// A condition: type, status, reason, message.
type Condition = (&'static str, bool, &'static str, String);

/// Returns the conditions in the order in which they are written.
fn conditions(of: &Findings) -> [Condition; 5] {
    let counts = |counts: &BTreeMap<String, usize>, verb: &str| {
        let texts: Vec<String> =
            counts.iter().map(|(what, count)| format!("{what} {verb} {count} resource instances")).collect();
        texts.join(", ")
    };
    let content = match of.failures.len() {
        0 => ("ContentDeleted", "All content successfully deleted, may be waiting on finalization".to_owned()),
        count => {
            let why = of.failures.join(", ");
            ("ContentDeletionFailed", format!("Failed to delete all resource types, {count} remaining: {why}"))
        }
    };
    let remaining = if of.remaining.is_empty() {
        ("ContentRemoved", "All content successfully removed".to_owned())
    } else {
        ("SomeResourcesRemain", format!("Some resources are remaining: {}", counts(&of.remaining, "has")))
    };
    let finalizers = if of.finalizers.is_empty() {
        ("ContentHasNoFinalizers", "All content-preserving finalizers finished".to_owned())
    } else {
        let counts = counts(&of.finalizers, "in");
        ("SomeFinalizersRemain", format!("Some content in the namespace has finalizers remaining: {counts}"))
    };
    [
        (
            "NamespaceDeletionDiscoveryFailure",
            false,
            "ResourcesDiscovered",
            "All resources successfully discovered".into(),
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            false,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed".into(),
        ),
        ("NamespaceDeletionContentFailure", !of.failures.is_empty(), content.0, content.1),
        ("NamespaceContentRemaining", !of.remaining.is_empty(), remaining.0, remaining.1),
        ("NamespaceFinalizersRemaining", !of.finalizers.is_empty(), finalizers.0, finalizers.1),
    ]
}

/// Returns whether a status has these findings already.
pub fn tells(namespace: &Value, findings: &Findings) -> bool {
    let present = namespace.list_at(&["status", "conditions"]);
    conditions(findings).iter().all(|wanted| present.iter().any(|own| same(own, wanted)))
}

fn same(own: &Value, (kind, status, reason, message): &Condition) -> bool {
    own.str_at(&["type"]) == *kind
        && own.str_at(&["status"]) == text(*status)
        && own.str_at(&["reason"]) == *reason
        && own.str_at(&["message"]) == message
}

/// Writes findings into a status. Keeps the transition time of a condition whose status does not change.
pub fn write(namespace: &mut Value, findings: &Findings, now: &str) {
    let mut list = namespace.list_at(&["status", "conditions"]).to_vec();
    for wanted in conditions(findings) {
        let (kind, status, reason, message) = &wanted;
        let at = list.iter().position(|own| own.str_at(&["type"]) == *kind);
        let since = at.map(|at| &list[at]).filter(|own| own.str_at(&["status"]) == text(*status));
        let since = since.map_or(now, |own| own.str_at(&["lastTransitionTime"])).to_owned();
        let condition = value!({"type": (*kind), "status": (text(*status)), "lastTransitionTime": since,
            "reason": (*reason), "message": (message.as_str())});
        match at {
            Some(at) => list[at] = condition,
            None => list.push(condition),
        }
    }
    namespace.set_at(&["status", "conditions"], list);
}

const fn text(status: bool) -> &'static str {
    if status { "True" } else { "False" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_report_the_rest_and_keep_their_transition_time() {
        let mut namespace =
            value!({"status": {"phase": "Terminating", "conditions": [{"type": "Own", "status": "True"}]}});
        let held = Findings {
            remaining: [("configmaps.".to_owned(), 1), ("deployments.apps".to_owned(), 2)].into(),
            finalizers: [("example.com/hold".to_owned(), 3)].into(),
            ..Findings::default()
        };
        assert!(!tells(&namespace, &held));
        write(&mut namespace, &held, "2030-01-01T00:00:00Z");
        assert!(tells(&namespace, &held));
        let at = |namespace: &Value, index: usize, field: &str| {
            namespace.list_at(&["status", "conditions"])[index].str_at(&[field]).to_owned()
        };
        assert_eq!(
            at(&namespace, 4, "message"),
            "Some resources are remaining: configmaps. has 1 resource instances, deployments.apps has 2 resource instances"
        );
        let message =
            "Some content in the namespace has finalizers remaining: example.com/hold in 3 resource instances";
        assert_eq!(at(&namespace, 5, "message"), message);
        write(&mut namespace, &Findings::default(), "2030-01-01T00:00:09Z");
        assert_eq!(at(&namespace, 1, "lastTransitionTime"), "2030-01-01T00:00:00Z");
        assert_eq!(at(&namespace, 4, "lastTransitionTime"), "2030-01-01T00:00:09Z");
        assert_eq!(at(&namespace, 4, "reason"), "ContentRemoved");
        assert_eq!(namespace.list_at(&["status", "conditions"]).len(), 6);
    }
}
