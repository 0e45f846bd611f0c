//! Protected groups, which belong to the Kubernetes project: definitions in them need an annotation with their approval
//! (KEP-2337).

use flotilla_proto::value::Value;

use crate::field::{Errors, Path, quote};

const ANNOTATION: &str = "api-approved.kubernetes.io";
const LINK: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// The approval of a definition in a protected group, as its annotation states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// There is no annotation.
    Missing,
    /// The annotation says that the definition is unapproved on purpose.
    Bypassed,
    /// The annotation has the URL of the approval.
    Given,
    /// The annotation has another value.
    Invalid,
}

/// Returns the approval that a definition states.
pub fn approval(object: &Value) -> Approval {
    match text(object) {
        "" => Approval::Missing,
        text if text.starts_with("unapproved") => Approval::Bypassed,
        text if is_url(text) => Approval::Given,
        _ => Approval::Invalid,
    }
}

fn text(object: &Value) -> &str {
    object.str_at(&["metadata", "annotations", ANNOTATION])
}

fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, rest)| {
        let host = rest.split(['/', '?']).next().unwrap_or("");
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
            && !host.is_empty()
            && !text.contains(|c: char| c.is_ascii_control() || c == ' ')
    })
}

/// Returns whether a definition is in a protected group.
pub fn is_protected(object: &Value) -> bool {
    let group = object.str_at(&["spec", "group"]);
    ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|owner| group.strip_suffix(owner).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

/// Returns the message of the condition about the approval.
pub fn message(object: &Value) -> String {
    let (text, wanted) =
        (text(object), format!("protected groups must have approval annotation {}", quote(ANNOTATION)));
    match approval(object) {
        Approval::Missing => format!("{wanted}, {LINK}"),
        Approval::Bypassed => format!("not approved: {}", quote(text)),
        Approval::Given => format!("approved in {text}"),
        Approval::Invalid => {
            format!("{wanted} with either a URL or a reason starting with \"unapproved\", {LINK}")
        }
    }
}

/// Checks the approval of a definition, unless the stored definition states the same.
pub fn validate(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let state = approval(object);
    if !is_protected(object) || old.is_some_and(|old| approval(old) == state) {
        return;
    }
    let path = Path::root("metadata.annotations");
    let path = path.key(ANNOTATION);
    match state {
        Approval::Missing => errors.required(&path, message(object)),
        Approval::Invalid => errors.invalid_str(&path, text(object), message(object)),
        Approval::Bypassed | Approval::Given => {}
    }
}
