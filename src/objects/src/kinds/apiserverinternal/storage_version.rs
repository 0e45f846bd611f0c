//! StorageVersions: the versions in which the servers of a cluster store objects (KEP-2339).

use std::collections::{HashMap, HashSet};

use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::fieldmanager::reset;
use crate::printing::{Printer, config};
use crate::rules::{Generation, NameRule, Strategy, metadata, names};

const API_VERSION: &str = "an apiVersion is a DNS-1035 label, which must consist of lower case alphanumeric characters \
    or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', \
    regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?') with an optional DNS subdomain prefix and '/' (e.g. \
    'example.com/MyVersion')";
const EMPTY: &str = "must be non-empty";

/// Rules of StorageVersions.
pub static STRATEGY: Strategy = Strategy {
    name: NameRule::Own,
    generation: Generation::ClientOwned,
    status: true,
    unconditional_update: false,
    prepare_status: |object, old, _| metadata::reset_for_status(object, old),
    validate: |object, errors| {
        let path = Path::root("metadata.name");
        names::check(&path, object.str_at(&["metadata", "name"]), name_messages, errors);
    },
    validate_status: |object, _, errors| validate_status(object.at(&["status"]), errors),
    resets: &[("status", reset::SPEC_AND_METADATA)],
    printer: Some(Printer::of(config::storage_version)),
    ..Strategy::DEFAULT
};

/// Checks a name: group and resource, with a dot between them.
fn name_messages(name: &str) -> names::Messages {
    let Some((group, resource)) = name.rsplit_once('.') else {
        return vec!["name must be in the form of <group>.<resource>".into()];
    };
    let of_group = names::dns1123_subdomain(group).into_iter().map(|why| format!("the group segment {why}").into());
    let of_resource =
        names::dns1035_label(resource).into_iter().map(|why| format!("the resource segment {why}").into());
    of_group.chain(of_resource).collect()
}

fn validate_status(status: &Value, errors: &mut Errors) {
    let path = Path::root("status");
    let mut seen = HashSet::new();
    for (index, server) in status.list_at(&["storageVersions"]).iter().enumerate() {
        let path = path.child("storageVersions");
        let (path, id) = (path.index(index), server.str_at(&["apiServerID"]));
        if !seen.insert(id) {
            errors.duplicate(&path.child("apiServerID"), &id.into());
        }
        validate_server(server, &path, errors);
    }
    validate_common(status, &path.child("commonEncodingVersion"), errors);
    validate_conditions(status.list_at(&["conditions"]), &path, errors);
}

fn validate_server(server: &Value, path: &Path<'_>, errors: &mut Errors) {
    names::check(&path.child("apiServerID"), server.str_at(&["apiServerID"]), names::dns1123_subdomain, errors);
    let encoding = server.str_at(&["encodingVersion"]);
    check_version(&path.child("encodingVersion"), encoding, errors);
    let (decodable, decodable_path) = (server.list_at(&["decodableVersions"]), path.child("decodableVersions"));
    for (index, version) in decodable.iter().enumerate() {
        check_version(&decodable_path.index(index), version.as_str().unwrap_or(""), errors);
    }
    if !decodable.iter().any(|version| version.as_str() == Some(encoding)) {
        let why = format!("decodableVersions must include encodingVersion {encoding}");
        errors.invalid(&decodable_path, server.at(&["decodableVersions"]), why);
    }
    for (index, version) in server.list_at(&["servedVersions"]).iter().enumerate() {
        let path = path.child("servedVersions");
        let (path, text) = (path.index(index), version.as_str().unwrap_or(""));
        check_version(&path, text, errors);
        if !decodable.contains(version) {
            let all: Vec<&str> = decodable.iter().filter_map(Value::as_str).collect();
            let all = all.join(" ");
            let why = format!("individual served version : {text} must be included in decodableVersions : [{all}]");
            errors.invalid_str(&path, text, why);
        }
    }
}

/// Checks an API version. All that is wrong with it is one error.
fn check_version(path: &Path<'_>, text: &str, errors: &mut Errors) {
    let mut wrong: Vec<String> = Vec::new();
    let (group, version) = match text.split_once('/') {
        None => (None, text),
        Some((_, rest)) if rest.contains('/') => return errors.invalid_str(path, text, API_VERSION),
        Some((group, version)) => (Some(group), version),
    };
    let mut add = |part: &str, text: &str, messages: fn(&str) -> names::Messages| match text {
        "" => wrong.push(format!("{part} part: {EMPTY}")),
        _ => wrong.extend(messages(text).into_iter().map(|why| format!("{part} part: {why}"))),
    };
    if let Some(group) = group {
        add("group", group, names::dns1123_subdomain);
    }
    add("version", version, names::dns1035_label);
    if !wrong.is_empty() {
        errors.invalid_str(path, text, wrong.join(","));
    }
}

/// Checks that the common version is that of all servers, and absent if they differ.
fn validate_common(status: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut versions = status.list_at(&["storageVersions"]).iter().map(|server| server.str_at(&["encodingVersion"]));
    let first = versions.next();
    let common = first.filter(|first| versions.all(|version| version == *first));
    let stated = status.at(&["commonEncodingVersion"]);
    let why = match (common, stated.as_str()) {
        (None, None) => return,
        (Some(common), Some(stated)) if common == stated => return,
        (None, Some(_)) => {
            "should be nil if servers do not agree on the same encoding version, or if there is no server \
            reporting the supported versions yet"
                .to_owned()
        }
        (Some(common), None) => format!("the common encoding version is {common}"),
        (Some(common), Some(_)) => format!("the actual common encoding version is {common}"),
    };
    errors.invalid(path, stated, why);
}

fn validate_conditions(conditions: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let mut seen = HashMap::new();
    for (index, condition) in conditions.iter().enumerate() {
        // The reference leaves `conditions` out of the path.
        let (path, kind) = (path.index(index), condition.str_at(&["type"]));
        if let Some(before) = seen.insert(kind, index) {
            let why = format!("the type of the condition is not unique, it also appears in conditions[{before}]");
            errors.invalid_str(&path.child("type"), kind, why);
        }
        for field in ["type", "status"] {
            names::check(&path.child(field), condition.str_at(&[field]), names::qualified_name, errors);
        }
        for field in ["reason", "message"] {
            if condition.str_at(&[field]).is_empty() {
                errors.required(&path.child(field), "");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn faults(status: Value) -> Vec<String> {
        let mut errors = Errors::default();
        validate_status(&status, &mut errors);
        errors.0.iter().map(|error| format!("{}: {}", error.field, error.detail)).collect()
    }

    #[test]
    fn names_have_a_group_and_a_resource() {
        assert!(name_messages("apps.deployments").is_empty());
        assert_eq!(name_messages("nodot").len(), 1);
        assert!(name_messages("core.").first().is_some_and(|why| why.starts_with("the resource segment ")));
        assert!(name_messages("Bad.pods").first().is_some_and(|why| why.starts_with("the group segment ")));
    }

    #[test]
    fn the_common_version_is_that_of_all_servers() {
        let server = |id: &str, version: &str| value!({"apiServerID": id, "encodingVersion": version, "decodableVersions": [version]});
        let (same, other) =
            (value!([(server("a", "v1")), (server("b", "v1"))]), value!([(server("a", "v1")), (server("b", "v2"))]));
        assert_eq!(faults(value!({"storageVersions": (same.clone()), "commonEncodingVersion": "v1"})), [""; 0]);
        assert_eq!(faults(value!({"storageVersions": (other.clone())})), [""; 0]);
        let why = "status.commonEncodingVersion: the common encoding version is v1";
        assert_eq!(faults(value!({"storageVersions": (same)})), [why]);
        assert!(
            faults(value!({"storageVersions": (other), "commonEncodingVersion": "v1"}))[0].contains("should be nil")
        );
    }

    #[test]
    fn versions_are_valid_and_can_be_decoded() {
        let server = value!({
            "apiServerID": "a", "encodingVersion": "g/v1/x", "decodableVersions": ["/v1", "a/"], "servedVersions": ["v3"]
        });
        let found = faults(value!({"storageVersions": [(server)], "commonEncodingVersion": "g/v1/x"}));
        let fields: Vec<&str> = found.iter().filter_map(|fault| fault.split(": ").next()).collect();
        let path = "status.storageVersions[0]";
        let wanted = [
            "encodingVersion",
            "decodableVersions[0]",
            "decodableVersions[1]",
            "decodableVersions",
            "servedVersions[0]",
        ];
        assert_eq!(fields, wanted.map(|field| format!("{path}.{field}")));
        assert!(
            found[1].ends_with("group part: must be non-empty")
                && found[2].ends_with("version part: must be non-empty")
        );
    }
}
