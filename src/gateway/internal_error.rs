//! Texts of internal errors, in the words of kube-apiserver's handlers below its API.

use super::head::Head;
use crate::field::quote;

/// Returns the text of the answer 500 to a request that failed for this reason.
pub(super) fn internal_error(head: &Head<'_>, why: &str) -> String {
    format!("Internal Server Error: {}: {why}\n", quote(&shown(head)))
}

/// Returns the text that answers `/watch` without a resource.
pub(super) fn watch_of_nothing(head: &Head<'_>) -> String {
    let why = "failed to create RequestInfo: unable to determine kind and namespace from url,";
    internal_error(head, &format!("{why} {}", shown(head)))
}

/// Returns the target of the request, escaped for HTML.
fn shown(head: &Head<'_>) -> String {
    let query = if head.query_text.is_empty() { String::new() } else { format!("?{}", head.query_text) };
    format!("{}{query}", head.path).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
