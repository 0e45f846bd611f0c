//! Parameters of operations.

use std::collections::HashMap;
use std::sync::LazyLock;

use flotilla_proto::catalogue;
use flotilla_proto::schema::{Field, Shape, Text, Type};
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::prose;

/// A parameter of an operation or of all operations of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parameter {
    pub name: Text,
    /// `query` or `path`; those in the path are required.
    pub place: &'static str,
    /// OpenAPI type.
    pub kind: &'static str,
    pub description: Text,
    /// Name under which OpenAPI v2 shares it; empty when it does not.
    pub shared: Text,
}

static TABLE: LazyLock<HashMap<&'static str, Parameter>> = LazyLock::new(|| lines().filter_map(parse).collect());

/// Names under which v2 shares the fields of options, by kind and field.
static OPTIONS: LazyLock<HashMap<(&'static str, &'static str), &'static str>> = LazyLock::new(|| {
    let words = |line: &'static str| {
        let mut words = line.split_ascii_whitespace();
        Some(((words.next()?, words.next()?), words.next()?))
    };
    lines().filter(|line| !line.contains(" -- ")).filter_map(words).collect()
});

fn lines() -> impl Iterator<Item = &'static str> {
    include_str!("parameters.txt").lines().filter(|line| !line.starts_with('#'))
}

fn parse(line: &'static str) -> Option<(&'static str, Parameter)> {
    let (facts, description) = line.split_once(" -- ")?;
    let mut words = facts.split_ascii_whitespace();
    let (name, place, kind, suffix) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let shared = if suffix == "." { "".into() } else { Text::from(format!("{name}-{suffix}")) };
    Some((name, Parameter { name: name.into(), place, kind, description: description.into(), shared }))
}

/// Returns parameters of the table by name, in the given order.
pub(super) fn named(names: &[&str]) -> Vec<Parameter> {
    names.iter().filter_map(|name| TABLE.get(name).cloned()).collect()
}

/// Returns the parameter `fieldManager` of patches.
pub(super) fn patch_manager() -> Parameter {
    Parameter {
        name: "fieldManager".into(),
        place: "query",
        kind: "string",
        description: "Under whose name changes are tracked: up to 128 printable characters. Apply needs it.".into(),
        shared: "fieldManager-7c6nTn1T".into(),
    }
}

/// Returns the path parameter for the name of the object.
pub(super) fn name_of(kind: &str) -> Parameter {
    in_path("name", format!("Name of the {kind}.").into(), "")
}

/// Returns the path parameter for the namespace.
pub(super) fn namespace() -> Parameter {
    in_path("namespace", "Namespace in which the objects live.".into(), "namespace-vgWSWtn3")
}

/// Returns the path parameter for the rest of a proxied request's path.
pub(super) fn proxied_path() -> Parameter {
    in_path("path", "What follows the path of the object.".into(), "path-z6Ciiujn")
}

fn in_path(name: &'static str, description: Text, shared: &'static str) -> Parameter {
    Parameter { name: name.into(), place: "path", kind: "string", description, shared: shared.into() }
}

/// Returns the fields of an options kind as query parameters; times are left out, as they have no plain type.
pub(super) fn of_options(version: &str, kind: &str) -> Vec<Parameter> {
    let Some(options) = catalogue::kind("", version, kind) else { return Vec::new() };
    let fields = options.of.fields.iter().filter(|field| {
        !matches!(&*field.name, "kind" | "apiVersion") && !matches!(field.shape, Shape::Time | Shape::MicroTime)
    });
    fields.map(|field| option(&options.of, field)).collect()
}

fn option(of: &Type, field: &Field) -> Parameter {
    let kind = match &field.shape {
        Shape::Bool => "boolean",
        Shape::Int32 | Shape::Int64 | Shape::Uint(_) => "integer",
        Shape::List(list) if matches!(list.item, Shape::Int32 | Shape::Int64) => "integer",
        _ => "string",
    };
    let shared = OPTIONS.get(&(&*of.name, &*field.name)).map_or("".into(), |suffix| format!("{}-{suffix}", field.name));
    let description = prose::field(of, field).into();
    Parameter { name: field.name.clone(), place: "query", kind, description, shared: shared.into() }
}

impl Parameter {
    fn base(&self) -> Value {
        let mut out = value!({"name": (&*self.name), "in": (self.place), "description": (&*self.description)});
        if self.place == "path" {
            out.set_at(&["required"], true);
        }
        out
    }

    /// Returns the parameter in the form of OpenAPI v3.
    pub fn v3(&self) -> Value {
        let mut out = self.base();
        out.set_at(&["schema"], value!({"type": (self.kind), "uniqueItems": true}));
        out
    }

    /// Returns the parameter in the form of OpenAPI v2, not shared.
    pub fn v2(&self) -> Value {
        let mut out = value!({"uniqueItems": true, "type": (self.kind)});
        if let (Value::Object(out), Value::Object(base)) = (&mut out, self.base()) {
            for (key, value) in base {
                out.insert(key, value);
            }
        }
        out
    }
}
