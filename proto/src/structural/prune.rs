//! Dropping members that a schema does not know.

use super::{Additional, Structural, is_meta};
use crate::limits::PRUNED_PATHS_BYTES_MAX;
use crate::value::Value;

/// Drops the members that the schema does not know, and returns their paths, sorted: `spec.a`, `spec.list[0].x`. If
/// there are very many, it returns only some.
///
/// `is_root`: whether the value is an API object. Then, as in embedded resources, its apiVersion, kind and metadata are
/// kept unchanged. Objects without unknown members are not changed.
pub fn prune(schema: &Structural, value: &mut Value, is_root: bool) -> Vec<String> {
    let mut unknown = Vec::new();
    let context = PruningContext { schema: Some(schema), preserves: false, is_object: is_root };
    let (mut drops, mut bytes) = (false, 0);
    find(context, value, &mut String::new(), &mut |path| {
        drops = true;
        bytes += path.len();
        if bytes <= PRUNED_PATHS_BYTES_MAX {
            unknown.push(path.to_owned());
        }
    });
    if !is_root {
        // Unknown members with the names of standard ones are dropped without being returned.
        drops |= value.as_object().is_some_and(|map| map.keys().any(is_meta));
    }
    if drops {
        clean(context, value);
        unknown.sort_unstable();
    }
    unknown
}

/// The facts about a value that follow from the schemas around it.
#[derive(Clone, Copy)]
struct PruningContext<'s> {
    /// Its schema. `None` where the schema has none for it.
    schema: Option<&'s Structural>,
    /// Whether unknown members are kept because of an enclosing list.
    preserves: bool,
    /// Whether it is an API object, whatever its schema states.
    is_object: bool,
}

/// The treatment of a member.
enum MemberSchema<'s> {
    Preserved,
    Unknown,
    Known(PruningContext<'s>),
}

impl<'s> PruningContext<'s> {
    fn at(schema: Option<&'s Structural>) -> Self {
        Self { schema, preserves: false, is_object: false }
    }

    fn preserves(self) -> bool {
        self.preserves || self.schema.is_some_and(|schema| schema.preserves_unknown)
    }

    fn member(self, name: &str) -> MemberSchema<'s> {
        let Some(schema) = self.schema else { return MemberSchema::Unknown };
        if (schema.embedded || self.is_object) && is_meta(name) {
            return MemberSchema::Preserved;
        }
        match (schema.property(name), &schema.additional) {
            (Some(property), _) => MemberSchema::Known(Self::at(Some(property))),
            (None, Additional::Of(schema)) => MemberSchema::Known(Self::at(Some(schema))),
            (None, Additional::Any(_)) => MemberSchema::Known(Self::at(None)),
            (None, Additional::Absent) if self.preserves() => MemberSchema::Preserved,
            (None, Additional::Absent) => MemberSchema::Unknown,
        }
    }

    /// Returns the context of the items of a list. Returns `None` when they are kept as they are.
    fn items(self) -> Option<Self> {
        let items = self.schema.and_then(|schema| schema.items.as_deref());
        let preserves = self.preserves();
        (items.is_some() || !preserves).then_some(Self { preserves, ..Self::at(items) })
    }
}

/// Visits the paths of unknown members.
fn find(context: PruningContext<'_>, value: &Value, path: &mut String, visit: &mut impl FnMut(&str)) {
    let length = path.len();
    match value {
        Value::Object(map) => {
            for (name, value) in map.iter() {
                let schema = context.member(name);
                if matches!(schema, MemberSchema::Preserved)
                    || matches!(schema, MemberSchema::Unknown) && length == 0 && is_meta(name)
                {
                    continue;
                }
                if length > 0 {
                    path.push('.');
                }
                path.push_str(name);
                match schema {
                    MemberSchema::Known(context) => find(context, value, path, visit),
                    _ => visit(path),
                }
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            let Some(context) = context.items() else { return };
            for (index, item) in items.iter().enumerate() {
                if !matches!(item, Value::Object(_) | Value::Array(_)) {
                    continue;
                }
                path.push_str(&format!("[{index}]"));
                find(context, item, path, visit);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// Drops unknown members.
fn clean(context: PruningContext<'_>, value: &mut Value) {
    match value {
        Value::Object(map) => map.retain(|name, value| match context.member(name) {
            MemberSchema::Preserved => true,
            MemberSchema::Unknown => false,
            MemberSchema::Known(context) => {
                clean(context, value);
                true
            }
        }),
        Value::Array(items) => {
            let Some(context) = context.items() else { return };
            items.iter_mut().for_each(|item| clean(context, item));
        }
        _ => {}
    }
}
