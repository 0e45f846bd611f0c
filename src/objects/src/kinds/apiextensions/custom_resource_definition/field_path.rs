//! Follows field paths through the schema of a definition.

use flotilla_cel::schema::field_path::{Error, Names};
use flotilla_proto::value::Value;

use super::parts::{self, ADDITIONAL};

/// A field that a path leads to.
#[derive(Debug, PartialEq)]
pub struct FoundField<'a> {
    /// The names from the root to the field.
    pub names: Vec<String>,
    /// The schema of the field; absent where the schema does not describe the field.
    pub schema: Option<&'a Value>,
}

/// Follows a path through a schema. `brackets` allows names in brackets.
///
/// # Errors
/// The path is invalid, or leads to no field.
pub fn find<'a>(path: &str, schema: &'a Value, brackets: bool) -> Result<FoundField<'a>, Error> {
    let mut found = FoundField { names: Vec::new(), schema: Some(schema) };
    for name in Names::of(path, brackets) {
        found.step(name?.into_owned())?;
    }
    Ok(found)
}

impl FoundField<'_> {
    fn step(&mut self, name: String) -> Result<(), Error> {
        let schema = self.schema.ok_or(Error::NoField)?;
        self.schema = if parts::is_filled(schema, "properties") {
            Some(parts::property(schema, &name).ok_or(Error::NoField)?)
        } else if parts::has(schema, ADDITIONAL) {
            parts::additional(schema)
        } else {
            return Err(Error::NoField);
        };
        self.names.push(name);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn paths_lead_to_fields_by_dots_and_brackets() {
        let schema = value!({"properties": {
            "spec": {"properties": {"a": {"type": "string"}, "b.c": {"type": "integer"}}},
            "map": {"additionalProperties": {"type": "boolean"}},
            "open": {"additionalProperties": true}
        }});
        let kind = |path: &str, brackets: bool| {
            let found = find(path, &schema, brackets).map_err(|error| error.to_string());
            found.map(|found| found.schema.map_or("", parts::kind).to_owned())
        };
        let fine = [
            (".spec.a", "string"),
            (".spec['b.c']", "integer"),
            (".map.x", "boolean"),
            (".map['it\\'s']", "boolean"),
            (".open.x", ""),
        ];
        for (path, expected) in fine {
            assert_eq!(kind(path, true), Ok(expected.to_owned()), "{path}");
        }
        let bad = [
            ("spec", "expected [ or . but got: spec"),
            (".", "unexpected end of JSON path"),
            (".spec.z", "does not refer to a valid field"),
            (".spec.a.b", "does not refer to a valid field"),
            (".spec[0]", "expected single quoted string but got 0"),
            (".spec['a'", "unexpected end of JSON path"),
            (".spec['a'.", "expected ] but got ."),
            (".open.x.y", "does not refer to a valid field"),
        ];
        for (path, why) in bad {
            assert_eq!(kind(path, true), Err(why.to_owned()), "{path}");
        }
        assert_eq!(kind(".spec['a']", false), Err("array notation is not allowed".to_owned()));
    }
}
