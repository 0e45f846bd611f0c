//! Paths and operations in a form from which both versions of OpenAPI are written.

use flotilla_proto::schema::Text;

use super::parameters::Parameter;

/// A path with its operations.
#[derive(Debug, Clone)]
pub(super) struct PathItem {
    pub path: String,
    /// Parameters of every operation.
    pub parameters: Vec<Parameter>,
    pub operations: Vec<Operation>,
}

/// One method on a path.
#[derive(Debug, Clone)]
pub(super) struct Operation {
    /// Method in lower case.
    pub method: &'static str,
    /// Identifier that is unique in all documents.
    pub id: String,
    pub tag: String,
    pub description: String,
    /// `x-kubernetes-action`; empty for none.
    pub action: &'static str,
    /// Group, version and kind of its objects.
    pub kind: Option<(Text, Text, Text)>,
    pub parameters: Vec<Parameter>,
    pub body: Option<RequestBody>,
    /// Media types of requests.
    pub consumes: &'static [&'static str],
    /// Media types of answers.
    pub produces: &'static [&'static str],
    /// Status codes besides 401.
    pub codes: &'static [u16],
    pub answer: Answered,
}

/// The body of a request.
#[derive(Debug, Clone)]
pub(super) struct RequestBody {
    /// Name of the schema.
    pub of: String,
    pub required: bool,
    /// Name under which OpenAPI v2 shares it as a parameter; empty when it does not.
    pub shared: &'static str,
}

/// The body of an answer.
#[derive(Debug, Clone)]
pub(super) enum Answered {
    /// An object with the schema of this name.
    Object(String),
    /// Text.
    Text,
}

/// Media types of objects, as v2 orders them.
pub(super) const OBJECT: &[&str] = &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
/// Media types of lists, which may be streams of events.
pub(super) const LIST: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];
/// Media types of logs.
pub(super) const LOG: &[&str] =
    &["text/plain", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
/// Media types of custom resources.
pub(super) const CUSTOM: &[&str] = &["application/json", "application/yaml"];
/// Any media type.
pub(super) const ANY: &[&str] = &["*/*"];
/// Media types of patches.
pub(super) const PATCH: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];
/// Media types of patches of custom resources.
pub(super) const CUSTOM_PATCH: &[&str] =
    &["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];

impl PathItem {
    /// Moves the parameters that all operations share to the path, and sorts everything.
    pub fn settled(mut self) -> Self {
        if let Some((first, rest)) = self.operations.split_first() {
            let common: Vec<Parameter> = first
                .parameters
                .iter()
                .filter(|parameter| rest.iter().all(|other| other.parameters.contains(parameter)))
                .cloned()
                .collect();
            for operation in &mut self.operations {
                operation.parameters.retain(|parameter| !common.contains(parameter));
                operation.parameters.sort_by(|a, b| a.name.cmp(&b.name));
            }
            self.parameters.extend(common);
        }
        self.parameters.sort_by(|a, b| (&a.name, a.place).cmp(&(&b.name, b.place)));
        const ORDER: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];
        self.operations.sort_by_key(|operation| ORDER.iter().position(|method| *method == operation.method));
        self
    }
}

/// Converts a group or version to camel case for identifiers: letters, digits and underscores stay, other characters
/// begin a new word.
fn identifier(text: &str, mut capital: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if c.is_alphabetic() || c == '_' || (at > 0 && c.is_numeric()) {
            if capital {
                out.extend(c.to_uppercase())
            } else {
                out.push(c)
            }
            capital = false;
        } else {
            capital = true;
        }
    }
    out
}

fn short(group: &str) -> &str {
    if group.is_empty() { "core" } else { group.strip_suffix(".k8s.io").unwrap_or(group) }
}

/// Returns the tag of a group's operations: `rbacAuthorization`.
pub(super) fn group_tag(group: &str) -> String {
    identifier(short(group), false)
}

/// Returns the tag of a group version's operations: `rbacAuthorization_v1`.
pub(super) fn version_tag(group: &str, version: &str) -> String {
    format!("{}_{version}", group_tag(group))
}

/// Returns the name of a group in identifiers: `RbacAuthorization`.
pub(super) fn group_id(group: &str) -> String {
    identifier(short(group), true)
}

/// Returns the name of a group version in identifiers: `RbacAuthorizationV1`.
pub(super) fn version_id(group: &str, version: &str) -> String {
    format!("{}{}", group_id(group), identifier(version, true))
}

/// Returns a name with its first letter upper-case.
pub(super) fn title(name: &str) -> String {
    let mut rest = name.chars();
    rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or_default()
}
