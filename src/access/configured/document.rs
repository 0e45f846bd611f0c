//! Reads a configuration of `apiserver.config.k8s.io` or `apiserver.k8s.io` strictly: unknown fields are errors.

use flotilla_proto::value::Value;
use flotilla_proto::yaml;

use crate::field::quote;

/// The place in the reference's source that its decoding errors state.
const SCHEME: &str = "pkg/runtime/scheme.go:111";

/// The form of a value.
#[derive(Debug, Clone, Copy)]
pub enum DocumentForm {
    /// A text.
    Text,
    /// A boolean.
    Bool,
    /// A list.
    List(&'static DocumentForm),
    /// An object: the name of its type, and its fields.
    Object(&'static str, &'static [(&'static str, DocumentForm)]),
}

impl DocumentForm {
    /// Returns Go's name for the type.
    fn called(self) -> String {
        match self {
            Self::Text => "string".to_owned(),
            Self::Bool => "bool".to_owned(),
            Self::List(of) => format!("[]{}", of.called()),
            Self::Object(name, _) => format!("v1.{name}"),
        }
    }
}

/// The position of a value in the document.
struct DocumentPosition {
    /// The path, with the indices of lists.
    path: String,
    /// The type that has the member, then the path without indices: the form of Go's errors.
    member: String,
}

/// Reads a document of this kind, in one of these versions.
///
/// # Errors
/// The document is not of this kind and version, or not valid. The error is in the words of Kubernetes.
pub fn read(text: &str, kind: &str, versions: &[&str], form: DocumentForm) -> Result<Value, String> {
    let parsed = yaml::parse(text.as_bytes()).map_err(|error| error.to_string())?.value;
    let (version, stated) = (parsed.str_at(&["apiVersion"]), parsed.str_at(&["kind"]));
    if stated.is_empty() {
        return Err(format!("Object 'Kind' is missing in '{text}'"));
    }
    if version.is_empty() {
        return Err(format!("Object 'apiVersion' is missing in '{text}'"));
    }
    if stated != kind || !versions.contains(&version) {
        let (kind, version) = (quote(stated), quote(version));
        return Err(format!("no kind {kind} is registered for version {version} in scheme \"{SCHEME}\""));
    }
    let mut unknown = Vec::new();
    check(&parsed, form, &DocumentPosition { path: String::new(), member: String::new() }, &mut unknown)?;
    match &unknown[..] {
        [] => Ok(parsed),
        unknown => Err(format!("strict decoding error: {}", unknown.join(", "))),
    }
}

fn check(
    value: &Value,
    form: DocumentForm,
    position: &DocumentPosition,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    let wrong = || {
        let (kind, member) = (value.type_name(), &position.member);
        Err(format!("json: cannot unmarshal {kind} into Go struct field {member} of type {}", form.called()))
    };
    match form {
        _ if value.is_null() => Ok(()),
        DocumentForm::Text if value.as_str().is_none() => wrong(),
        DocumentForm::Bool if value.as_bool().is_none() => wrong(),
        DocumentForm::Text | DocumentForm::Bool => Ok(()),
        DocumentForm::List(of) => {
            let Some(items) = value.as_array() else { return wrong() };
            items.iter().enumerate().try_for_each(|(at, item)| {
                let position =
                    DocumentPosition { path: format!("{}[{at}]", position.path), member: position.member.clone() };
                check(item, *of, &position, unknown)
            })
        }
        DocumentForm::Object(of, fields) => {
            let Some(members) = value.as_object() else { return wrong() };
            let above = position.member.split_once('.').map(|(_, above)| format!("{above}.")).unwrap_or_default();
            let is_root = position.path.is_empty();
            for (name, member) in members.iter() {
                let path = if is_root { name.to_owned() } else { format!("{}.{name}", position.path) };
                match fields.iter().find(|(own, _)| *own == name) {
                    Some((_, form)) => {
                        let position = DocumentPosition { path, member: format!("{of}.{above}{name}") };
                        check(member, *form, &position, unknown)?;
                    }
                    None if is_root && matches!(name, "apiVersion" | "kind") => {}
                    None => unknown.push(format!("unknown field {}", quote(&path))),
                }
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read_strictly() {
        const FORM: DocumentForm = DocumentForm::Object(
            "X",
            &[
                ("is", DocumentForm::Bool),
                ("all", DocumentForm::List(&DocumentForm::Object("Y", &[("a", DocumentForm::Text)]))),
            ],
        );
        let read = |text: &str| read(text, "X", &["g/v1"], FORM).map(|_| ());
        assert_eq!(read("{apiVersion: g/v1, kind: X, all: [{a: b}], is: true}"), Ok(()));
        let unknown = "strict decoding error: unknown field \"all[0].b\", unknown field \"c\"";
        assert_eq!(read("{apiVersion: g/v1, kind: X, all: [{b: 1}], c: 2}"), Err(unknown.into()));
        let wrong = "json: cannot unmarshal number into Go struct field Y.all.a of type string";
        assert_eq!(read("{apiVersion: g/v1, kind: X, all: [{a: 1}]}"), Err(wrong.into()));
        let other = "no kind \"X\" is registered for version \"g/v2\" in scheme \"pkg/runtime/scheme.go:111\"";
        assert_eq!(read("{apiVersion: g/v2, kind: X}"), Err(other.into()));
        assert_eq!(read("{apiVersion: g/v1}"), Err("Object 'Kind' is missing in '{apiVersion: g/v1}'".into()));
    }
}
