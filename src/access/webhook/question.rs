//! The question to a webhook about a request: the specification of a SubjectAccessReview of `authorization.k8s.io`.

use flotilla_proto::value::{Map, Value};

use crate::access::attributes::{Attributes, ResourceAttributes};
use crate::access::user::User;
use crate::limits;
use crate::selector::{FieldOperator, FieldSelector, LabelSelector, Operator};

/// Returns the specification in version `v1`, without fields that are empty.
pub fn spec(user: &User, attributes: &Attributes<'_>) -> Value {
    let mut spec = Map::new();
    match attributes {
        Attributes::Resource(of) => spec.insert("resourceAttributes", resource(of)),
        Attributes::Path { verb, path } => {
            spec.insert("nonResourceAttributes", texts(&[("path", path), ("verb", verb)]))
        }
    };
    if !user.name.is_empty() {
        spec.insert("user", user.name.as_str());
    }
    if !user.groups.is_empty() {
        spec.insert("groups", user.groups.iter().map(|group| group.as_str().into()).collect::<Vec<Value>>());
    }
    if !user.extra.is_empty() {
        let mut extra = Map::new();
        for (key, values) in &user.extra {
            extra.insert(key.as_str(), values.iter().map(|value| value.as_str().into()).collect::<Vec<Value>>());
        }
        spec.insert("extra", extra);
    }
    if !user.uid.is_empty() {
        spec.insert("uid", user.uid.as_str());
    }
    spec.into()
}

fn texts(fields: &[(&str, &str)]) -> Map {
    fields.iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| (*name, Value::from(*text))).collect()
}

fn resource(of: &ResourceAttributes<'_>) -> Value {
    let mut attributes = texts(&[
        ("namespace", of.namespace),
        ("verb", of.verb),
        ("group", of.group),
        ("version", of.version),
        ("resource", of.resource),
        ("subresource", of.subresource),
        ("name", of.name),
    ]);
    for (name, requirements) in [("fieldSelector", fields(of.fields)), ("labelSelector", labels(of.labels))] {
        if !requirements.is_empty() {
            let mut selector = Map::new();
            selector.insert("requirements", requirements);
            attributes.insert(name, selector);
        }
    }
    attributes.into()
}

fn requirement(key: &str, operator: &str, values: Vec<Value>) -> Value {
    let mut requirement = texts(&[("key", key), ("operator", operator)]);
    if !values.is_empty() {
        requirement.insert("values", values);
    }
    requirement.into()
}

/// Returns the requirements of a field selector. Returns none if the selector is invalid: the question then covers more
/// objects.
fn fields(text: &str) -> Vec<Value> {
    let selector = if text.is_empty() { None } else { FieldSelector::parse(text).ok() };
    let requirements = selector.map(|selector| selector.0).unwrap_or_default();
    let operator = |operator| if operator == FieldOperator::Equals { "In" } else { "NotIn" };
    let requirement = |one: &crate::selector::FieldRequirement| {
        requirement(&one.field, operator(one.operator), vec![one.value.as_str().into()])
    };
    requirements.iter().map(requirement).collect()
}

/// Returns the requirements of a label selector, sorted by key. Leaves out those that compare numbers.
fn labels(text: &str) -> Vec<Value> {
    let selector = if text.is_empty() { None } else { LabelSelector::parse(text).ok() };
    let mut requirements = selector.map(|selector| selector.0).unwrap_or_default();
    requirements.sort_by(|one, other| one.key.cmp(&other.key));
    let shown = requirements.iter().filter_map(|one| {
        let operator = match one.operator {
            Operator::In => "In",
            Operator::NotIn => "NotIn",
            Operator::Exists => "Exists",
            Operator::DoesNotExist => "DoesNotExist",
            _ => return None,
        };
        Some(requirement(&one.key, operator, one.values.iter().map(|value| value.as_str().into()).collect()))
    });
    shown.collect()
}

/// Returns the specification as the webhook gets it: in `v1beta1` the groups have another name.
pub fn sent(mut spec: Value, version: &str) -> Value {
    if version == "v1beta1"
        && let Some(members) = spec.as_object_mut()
    {
        let renamed = std::mem::take(members).into_iter();
        *members = renamed
            .map(|(name, value)| if &*name == "groups" { ("group".into(), value) } else { (name, value) })
            .collect();
    }
    spec
}

/// Returns the specification as match conditions see it: empty fields are present, except selectors.
pub fn shown(spec: &Value) -> Value {
    let mut shown = Map::new();
    for (name, empty) in [
        ("user", Value::from("")),
        ("groups", Value::Array(Vec::new())),
        ("uid", "".into()),
        ("extra", Value::object()),
    ] {
        let value = spec.at(&[name]);
        shown.insert(name, if value.is_null() { empty } else { value.clone() });
    }
    let attributes = spec.at(&["resourceAttributes"]);
    if !attributes.is_null() {
        let mut all = Map::new();
        for name in ["namespace", "verb", "group", "version", "resource", "subresource", "name"] {
            all.insert(name, attributes.str_at(&[name]));
        }
        for name in ["fieldSelector", "labelSelector"] {
            let selector = attributes.at(&[name]);
            if selector.is_null() {
                continue;
            }
            let mut requirements = selector.list_at(&["requirements"]).to_vec();
            for requirement in &mut requirements {
                if requirement.at(&["values"]).is_null() {
                    requirement.set_at(&["values"], Value::Array(Vec::new()));
                }
            }
            let mut selector = Map::new();
            selector.insert("requirements", requirements);
            all.insert(name, selector);
        }
        shown.insert("resourceAttributes", all);
    }
    let other = spec.at(&["nonResourceAttributes"]);
    if !other.is_null() {
        let mut all = Map::new();
        for name in ["verb", "path"] {
            all.insert(name, other.str_at(&[name]));
        }
        shown.insert("nonResourceAttributes", all);
    }
    shown.into()
}

/// Returns whether the answer may be kept. Long texts of the user's choice could fill the memory.
pub fn is_kept(attributes: &Attributes<'_>) -> bool {
    let bytes = match attributes {
        Attributes::Path { verb, path } => verb.len() + path.len(),
        Attributes::Resource(of) => {
            let texts = [of.namespace, of.verb, of.group, of.version, of.resource, of.subresource, of.name];
            texts.iter().map(|text| text.len()).sum()
        }
    };
    bytes < limits::QUESTION_KEPT_BYTES
}

#[cfg(test)]
mod tests {
    use flotilla_proto::{json, value};

    use super::*;

    #[test]
    fn questions_are_as_in_kubernetes() {
        let user = User {
            name: "ann".into(),
            uid: "7".into(),
            groups: vec!["g".into()],
            extra: [("k".to_owned(), vec!["v".to_owned()])].into(),
        };
        let attributes = Attributes::Resource(ResourceAttributes {
            verb: "list",
            group: "apps",
            version: "v1",
            resource: "deployments",
            namespace: "n",
            fields: "metadata.name!=a",
            labels: "z in (b,a),a,!c",
            ..ResourceAttributes::default()
        });
        let asked = spec(&user, &attributes);
        let expected = r#"{"resourceAttributes":{"namespace":"n","verb":"list","group":"apps","version":"v1","resource":"deployments","fieldSelector":{"requirements":[{"key":"metadata.name","operator":"NotIn","values":["a"]}]},"labelSelector":{"requirements":[{"key":"a","operator":"Exists"},{"key":"c","operator":"DoesNotExist"},{"key":"z","operator":"In","values":["a","b"]}]}},"user":"ann","groups":["g"],"extra":{"k":["v"]},"uid":"7"}"#;
        assert_eq!(String::from_utf8(json::to_vec(&asked)).unwrap(), expected);
        let older = String::from_utf8(json::to_vec(&sent(asked, "v1beta1"))).unwrap();
        assert_eq!(older, expected.replace("\"groups\"", "\"group\""));
        let path = spec(&User::default(), &Attributes::Path { verb: "get", path: "/x" });
        assert_eq!(path, value!({"nonResourceAttributes": {"path": "/x", "verb": "get"}}));
        let seen = value!({"user": "", "groups": [], "uid": "", "extra": {},
            "nonResourceAttributes": {"verb": "get", "path": "/x"}});
        assert_eq!(shown(&path), seen);
    }
}
