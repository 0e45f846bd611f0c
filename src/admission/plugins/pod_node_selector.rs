//! PodNodeSelector: restricts the pods of a namespace to the nodes that an annotation of the namespace selects.

use std::collections::BTreeMap;

use flotilla_proto::value::{Map, Value};

use crate::admission::plugin::{DecidesBy, Part, Plugin, Presence};
use crate::admission::{BuiltInAttributes, Operation};
use crate::rules::names;
use crate::status::{ApiError, ApiResult};

const ANNOTATION: [&str; 3] = ["metadata", "annotations", "scheduler.alpha.kubernetes.io/node-selector"];
const CONFLICT: &str = "pod node label selector conflicts with its namespace node label selector";

type Labels = BTreeMap<String, String>;

/// The plugin.
pub const PLUGIN: Plugin =
    Plugin::new("PodNodeSelector", Presence::Off).mutating(decides_by, mutate).validating(decides_by, validate);

fn decides_by(part: Part<'_>, operation: Operation) -> Option<DecidesBy> {
    (part.name() == ("", "pods", "") && operation == Operation::Create).then_some(DecidesBy::Tables)
}

fn mutate(write: &BuiltInAttributes<'_>, pod: &mut Value) -> ApiResult<()> {
    let mut labels = of_namespace(write)?;
    let own = of_pod(pod);
    if conflicts(&labels, &own) {
        return Err(write.refuse(pod, CONFLICT));
    }
    labels.extend(own);
    if !labels.is_empty() {
        let labels: Map = labels.iter().map(|(key, value)| (key.as_str(), Value::from(value.as_str()))).collect();
        pod.set_at(&["spec", "nodeSelector"], labels);
    }
    Ok(())
}

fn validate(write: &BuiltInAttributes<'_>, pod: &Value) -> ApiResult<()> {
    match conflicts(&of_namespace(write)?, &of_pod(pod)) {
        true => Err(write.refuse(pod, CONFLICT)),
        false => Ok(()),
    }
}

/// Returns the labels that the namespace demands.
fn of_namespace(write: &BuiltInAttributes<'_>) -> ApiResult<Labels> {
    let namespace = write.target.namespace;
    let found = write.registry.look_up("", "namespaces", "", namespace)?;
    let found = found.ok_or_else(|| ApiError::not_found("", "namespaces", namespace))?;
    parse(found.str_at(&ANNOTATION)).map_err(|why| ApiError::new(500, "InternalError", &why))
}

fn of_pod(pod: &Value) -> Labels {
    let labels = pod.map_at(&["spec", "nodeSelector"]).into_iter().flat_map(Map::iter);
    labels.map(|(key, value)| (key.to_owned(), value.as_str().unwrap_or_default().to_owned())).collect()
}

fn conflicts(one: &Labels, other: &Labels) -> bool {
    one.iter().any(|(key, value)| other.get(key).is_some_and(|other| other != value))
}

/// Parses `KEY=VALUE,...`. `Err` states what is wrong.
fn parse(text: &str) -> Result<Labels, String> {
    let mut labels = Labels::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (key, value) = part.split_once('=').ok_or_else(|| format!("invalid selector: {part}"))?;
        let (key, value) = (key.trim(), value.trim());
        let wrong = names::qualified_name(key).into_iter().next();
        if let Some(wrong) = wrong.or_else(|| names::label_value(value).into_iter().next()) {
            return Err(wrong.into_owned());
        }
        labels.insert(key.to_owned(), value.to_owned());
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_lists_of_labels() {
        let labels = parse("env=dev, zone = a").unwrap();
        assert_eq!(labels, Labels::from([("env".into(), "dev".into()), ("zone".into(), "a".into())]));
        assert_eq!(parse("").unwrap(), Labels::new());
        assert_eq!(parse("env").unwrap_err(), "invalid selector: env");
        assert!(parse("a b=c").is_err() && parse("a=b c").is_err());
    }

    #[test]
    fn labels_conflict_if_a_key_has_two_values() {
        let labels = |text: &str| parse(text).unwrap();
        assert!(conflicts(&labels("a=1,b=2"), &labels("b=3")));
        assert!(!conflicts(&labels("a=1,b=2"), &labels("b=2,c=3")));
    }
}
