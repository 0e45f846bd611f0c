//! The formats that schemas may name. Values are not checked against unknown formats, so a definition with one gets a
//! warning.

use flotilla_proto::value::Value;

use super::parts;
use crate::field::quote;

/// Known formats of strings, without hyphens.
const OF_TEXTS: [&str; 26] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

fn is_known(kind: &str, format: &str) -> bool {
    match kind {
        "" | "string" => OF_TEXTS.contains(&format.replace('-', "").as_str()),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

/// Returns the unknown formats that a definition names.
fn unknown(object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for version in object.list_at(&["spec", "versions"]) {
        collect(version.at(&["schema", "openAPIV3Schema"]), &mut found);
    }
    found
}

fn collect(schema: &Value, found: &mut Vec<String>) {
    let format = schema.str_at(&["format"]);
    if !format.is_empty() && !is_known(parts::kind(schema), format) {
        found.push(format.to_owned());
    }
    parts::inside(schema).for_each(|schema| collect(schema, found));
}

/// Warns of unknown formats that the stored definition does not name.
pub fn warn(object: &Value, old: Option<&Value>, warnings: &mut Vec<String>) {
    let before = old.map(unknown).unwrap_or_default();
    let new = unknown(object).into_iter().filter(|format| !before.contains(format));
    warnings.extend(new.map(|format| format!("unrecognized format {}", quote(&format))));
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn definition(format: &str) -> Value {
        let properties =
            value!({"a": {"type": "string", "format": format}, "b": {"type": "integer", "format": "int32"}});
        let schema = value!({"openAPIV3Schema": {"type": "object", "properties": properties}});
        value!({"spec": {"versions": [{"name": "v1", "schema": schema}]}})
    }

    #[test]
    fn unknown_formats_get_one_warning() {
        let warned = |format: &str, old: Option<&Value>| {
            let mut warnings = Vec::new();
            warn(&definition(format), old, &mut warnings);
            warnings
        };
        assert_eq!(warned("date-time", None), Vec::<String>::new());
        assert_eq!(warned("int32", None), ["unrecognized format \"int32\""]);
        assert_eq!(warned("colour", None), ["unrecognized format \"colour\""]);
        assert_eq!(warned("colour", Some(&definition("colour"))), Vec::<String>::new());
    }
}
