//! Reads a configuration of `apiserver.config.k8s.io` or `apiserver.k8s.io` strictly: unknown fields are errors.

use flotilla_proto::value::Value;
use flotilla_proto::yaml;

use crate::field::quote;
use crate::webhooks::typed::kind;

/// The form of a value.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// A text.
    Text,
    /// A truth value.
    Bool,
    /// A list.
    List(&'static Form),
    /// An object: the name of its type, and its fields.
    Object(&'static str, &'static [(&'static str, Form)]),
}

impl Form {
    const fn called(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Bool => "bool",
            Self::List(_) => "list",
            Self::Object(name, _) => name,
        }
    }
}

/// Reads a document of this kind, in one of these versions.
///
/// # Errors
/// It is no such document, in the words of Kubernetes.
pub fn read(text: &str, kind: &str, versions: &[&str], form: Form) -> Result<Value, String> {
    let parsed = yaml::parse(text.as_bytes()).map_err(|error| error.to_string())?.value;
    let (version, stated) = (parsed.str_at(&["apiVersion"]), parsed.str_at(&["kind"]));
    if stated.is_empty() {
        return Err(format!("Object 'Kind' is missing in '{text}'"));
    }
    if version.is_empty() {
        return Err(format!("Object 'apiVersion' is missing in '{text}'"));
    }
    if stated != kind || !versions.contains(&version) {
        return Err(format!("no kind {} is registered for version {}", quote(stated), quote(version)));
    }
    let mut unknown = Vec::new();
    check(&parsed, form, "", &mut unknown)?;
    match &unknown[..] {
        [] => Ok(parsed),
        unknown => Err(format!("strict decoding error: {}", unknown.join(", "))),
    }
}

fn check(value: &Value, form: Form, path: &str, unknown: &mut Vec<String>) -> Result<(), String> {
    let wrong = || Err(format!("json: cannot unmarshal {} into {path} of type {}", kind(value), form.called()));
    match form {
        _ if value.is_null() => Ok(()),
        Form::Text if value.as_str().is_none() => wrong(),
        Form::Bool if value.as_bool().is_none() => wrong(),
        Form::Text | Form::Bool => Ok(()),
        Form::List(of) => {
            let Some(items) = value.as_array() else { return wrong() };
            let mut items = items.iter().enumerate();
            items.try_for_each(|(at, item)| check(item, *of, &format!("{path}[{at}]"), unknown))
        }
        Form::Object(_, fields) => {
            let Some(members) = value.as_object() else { return wrong() };
            for (name, member) in members.iter() {
                let place = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                match fields.iter().find(|(own, _)| *own == name) {
                    Some((_, of)) => check(member, *of, &place, unknown)?,
                    None if path.is_empty() && matches!(name, "apiVersion" | "kind") => {}
                    None => unknown.push(format!("unknown field {}", quote(&place))),
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
        const FORM: Form =
            Form::Object("X", &[("on", Form::Bool), ("all", Form::List(&Form::Object("Y", &[("a", Form::Text)])))]);
        let read = |text: &str| read(text, "X", &["g/v1"], FORM).map(|_| ());
        assert_eq!(read("{apiVersion: g/v1, kind: X, all: [{a: b}], on: true}"), Ok(()));
        let unknown = "strict decoding error: unknown field \"all[0].b\", unknown field \"c\"";
        assert_eq!(read("{apiVersion: g/v1, kind: X, all: [{b: 1}], c: 2}"), Err(unknown.into()));
        let wrong = "json: cannot unmarshal number into all[0].a of type string";
        assert_eq!(read("{apiVersion: g/v1, kind: X, all: [{a: 1}]}"), Err(wrong.into()));
        let other = "no kind \"X\" is registered for version \"g/v2\"";
        assert_eq!(read("{apiVersion: g/v2, kind: X}"), Err(other.into()));
        assert_eq!(read("{apiVersion: g/v1}"), Err("Object 'Kind' is missing in '{apiVersion: g/v1}'".into()));
    }
}
