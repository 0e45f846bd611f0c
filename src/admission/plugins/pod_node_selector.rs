//! PodNodeSelector: restricts the pods of a namespace to the nodes that an annotation of the namespace selects, or the
//! configuration if there is no annotation. Refuses node selectors that the configuration does not allow.

use std::borrow::Cow;
use std::collections::BTreeMap;

use flotilla_proto::value::{Map, Value};

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::field::{Errors, Path, quote};
use crate::rules::names;
use crate::status::{ApiError, ApiResult};

const ANNOTATION: [&str; 3] = ["metadata", "annotations", "scheduler.alpha.kubernetes.io/node-selector"];
const CONFLICT: &str = "pod node label selector conflicts with its namespace node label selector";
const NOT_ALLOWED: &str = "pod node label selector labels conflict with its namespace whitelist";
/// The member of the configuration with the selectors.
const CONFIGURATION: &str = "podNodeSelectorPluginConfig";
/// The entry for namespaces without the annotation.
const DEFAULT: &str = "clusterDefaultNodeSelector";

type Labels = BTreeMap<String, String>;

/// The configured labels: under `clusterDefaultNodeSelector`, those for namespaces without the annotation; under the
/// name of a namespace, those that the node selectors of its pods may have.
#[derive(Debug, Default)]
pub struct Selectors(BTreeMap<String, Labels>);

impl Selectors {
    /// Reads the configuration; adds an error for each selector that is wrong. As in Go, the case of the member does
    /// not matter.
    pub fn read(document: &Value, errors: &mut Errors) -> Self {
        let root = Path::root(CONFIGURATION);
        let members = document.as_object().into_iter().flat_map(Map::iter);
        let stated = members.filter(|(name, _)| name.eq_ignore_ascii_case(CONFIGURATION)).map(|(_, value)| value);
        let mut selectors = BTreeMap::new();
        for stated in stated.filter(|stated| !stated.is_null()) {
            let Some(all) = stated.as_object() else {
                errors.invalid(&root, stated, "must be selectors by namespace");
                continue;
            };
            for (name, value) in all.iter() {
                match value.as_str().ok_or_else(|| "must be a text".to_owned()).and_then(parse) {
                    Ok(labels) => drop(selectors.insert(name.to_owned(), labels)),
                    Err(why) => errors.invalid(&root.child(name), value, why),
                }
            }
        }
        Self(selectors)
    }

    fn of(&self, name: &str) -> Labels {
        self.0.get(name).cloned().unwrap_or_default()
    }

    /// Returns whether pods of a namespace may have a node selector. They may have any if no labels are configured for
    /// the namespace.
    fn allow(&self, namespace: &str, selector: &Labels) -> bool {
        let Some(allowed) = self.0.get(namespace).filter(|allowed| !allowed.is_empty()) else { return true };
        selector.iter().all(|(key, value)| allowed.get(key) == Some(value))
    }
}

/// The plugin.
pub const PLUGIN: Plugin =
    Plugin::new("PodNodeSelector", Presence::Off).mutating(decides_by, mutate).validating(decides_by, validate);

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    (part.name() == ("", "pods", "") && operation == Operation::Create).then_some(DecidesBy::Tables)
}

fn mutate(write: &BuiltInAttributes<'_>, pod: &mut Value) -> ApiResult<()> {
    let mut labels = of_namespace(write)?;
    let own = of_pod(pod);
    if conflicts(&labels, &own) {
        return Err(refuse(pod, CONFLICT));
    }
    labels.extend(own);
    if !labels.is_empty() {
        let labels: Map = labels.iter().map(|(key, value)| (key.as_str(), Value::from(value.as_str()))).collect();
        pod.set_at(&["spec", "nodeSelector"], labels);
    }
    validate(write, pod)
}

fn validate(write: &BuiltInAttributes<'_>, pod: &Value) -> ApiResult<()> {
    let own = of_pod(pod);
    if conflicts(&of_namespace(write)?, &own) {
        return Err(refuse(pod, CONFLICT));
    }
    match write.admission.configuration.node_selectors.allow(write.target.namespace, &own) {
        true => Ok(()),
        false => Err(refuse(pod, NOT_ALLOWED)),
    }
}

/// Returns 403. It does not name a pod whose name is not generated yet.
fn refuse(pod: &Value, why: &str) -> ApiError {
    ApiError::forbidden("", "pods", pod.str_at(&["metadata", "name"]), why)
}

/// Returns the labels that the namespace demands.
fn of_namespace(write: &BuiltInAttributes<'_>) -> ApiResult<Labels> {
    let namespace = write.target.namespace;
    let found = write.admission.tables.look_up("", "namespaces", "", namespace)?;
    let found = found.ok_or_else(|| ApiError::not_found("", "namespaces", namespace))?;
    match found.at(&ANNOTATION).as_str() {
        Some(text) => parse(text).map_err(ApiError::unknown),
        None => Ok(write.admission.configuration.node_selectors.of(DEFAULT)),
    }
}

fn of_pod(pod: &Value) -> Labels {
    let labels = pod.map_at(&["spec", "nodeSelector"]).into_iter().flat_map(Map::iter);
    labels.map(|(key, value)| (key.to_owned(), value.as_str().unwrap_or_default().to_owned())).collect()
}

fn conflicts(one: &Labels, other: &Labels) -> bool {
    one.iter().any(|(key, value)| other.get(key).is_some_and(|other| other != value))
}

/// Parses `KEY=VALUE,...`. `Err` states the mistake.
fn parse(text: &str) -> Result<Labels, String> {
    let mut labels = Labels::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        // The reference shows the parts of a selector as a list, and fields without a path as `<nil>`.
        let parts: Vec<&str> = part.split('=').collect();
        let [key, value] = parts[..] else { return Err(format!("invalid selector: [{}]", parts.join(" "))) };
        let (key, value) = (key.trim(), value.trim());
        let wrong = |path: &str, text: &str, why: Vec<Cow<'_, str>>| match why.is_empty() {
            true => Ok(()),
            false => Err(format!("{path}: Invalid value: {}: {}", quote(text), why.join("; "))),
        };
        wrong("<nil>", key, names::qualified_name(key))?;
        wrong(&format!("[{key}]"), value, names::label_value(value))?;
        labels.insert(key.to_owned(), value.to_owned());
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn selectors_are_lists_of_labels() {
        let labels = parse("env=dev, zone = a").unwrap();
        assert_eq!(labels, Labels::from([("env".into(), "dev".into()), ("zone".into(), "a".into())]));
        assert_eq!(parse("").unwrap(), Labels::new());
        assert_eq!(parse("env").unwrap_err(), "invalid selector: [env]");
        assert_eq!(parse("a=b=c").unwrap_err(), "invalid selector: [a b c]");
        assert!(parse("a b=c").unwrap_err().starts_with("<nil>: Invalid value: \"a b\": name part must consist of"));
        assert!(parse("a=b c").unwrap_err().starts_with("[a]: Invalid value: \"b c\": a valid label must be"));
    }

    #[test]
    fn selectors_are_configured_by_namespace() {
        let mut errors = Errors::default();
        let config = value!({"PodNodeSelectorPluginConfig": {"clusterDefaultNodeSelector": "env=dev", "n": "env=dev,zone=a",
            "any": ""}});
        let read = Selectors::read(&config, &mut errors);
        let labels = |text: &str| parse(text).unwrap();
        assert!(errors.is_empty() && read.of(DEFAULT) == labels("env=dev") && read.of("none").is_empty());
        assert!(
            read.allow("n", &labels("zone=a"))
                && read.allow("any", &labels("x=y"))
                && read.allow("none", &labels("x=y"))
        );
        assert!(!read.allow("n", &labels("zone=b")) && !read.allow("n", &labels("x=y")));
        Selectors::read(&value!({"podNodeSelectorPluginConfig": {"n": "env", "o": 1}}), &mut errors);
        let fields: Vec<&str> = errors.0.iter().map(|error| &*error.field).collect();
        assert_eq!(fields, ["podNodeSelectorPluginConfig.n", "podNodeSelectorPluginConfig.o"]);
    }

    #[test]
    fn labels_conflict_if_a_key_has_two_values() {
        let labels = |text: &str| parse(text).unwrap();
        assert!(conflicts(&labels("a=1,b=2"), &labels("b=3")));
        assert!(!conflicts(&labels("a=1,b=2"), &labels("b=2,c=3")));
    }
}
