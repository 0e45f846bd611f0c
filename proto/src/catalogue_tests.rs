//! Counts and spot facts of the tables.

use super::*;
use crate::schema::{AnyKind, Field, Presence, Shape, Topology, WirePart};

fn of(name: &str) -> &'static Type {
    type_by_openapi(name).unwrap_or_else(|| panic!("{name} is a type"))
}

fn field(of: &'static Type, name: &str) -> &'static Field {
    of.field(name).unwrap_or_else(|| panic!("{} has a field {name}", of.name)).1
}

#[test]
fn the_tables_are_complete() {
    assert_eq!((groups().len(), kinds().len(), types().len()), (22, 216, 788));
    assert_eq!((resources().count(), tables::RESOURCES.len()), (89, 89));
    let subresources: usize = resources().map(|of| of.subresources.len()).sum();
    let columns: usize = resources().map(|of| of.columns.len()).sum();
    assert_eq!((subresources, columns), (52, 397));
}

#[test]
fn every_resource_and_kind_is_found_by_its_names() {
    for of in resources() {
        let found = resource(&of.group, &of.version, &of.name).expect("found");
        assert!(std::ptr::eq(found, of), "{}", of.name);
        assert!(kind(&of.group, &of.version, &of.kind.name).is_some());
        if of.verbs.iter().any(|verb| verb == "list") {
            let list = kind(&of.group, &of.version, &of.list_kind).expect("listed kinds have a list kind");
            assert!(list.of.field("items").is_some());
            assert!(of.columns.iter().any(|column| column.priority == 0), "{} has columns", of.name);
        }
        for sub in of.subresources.iter() {
            let (group, version, name) = &sub.response_kind;
            assert!(kind(group, version, name).is_some(), "{}/{}", of.name, sub.name);
        }
    }
    for of in kinds() {
        assert!(std::ptr::eq(kind(&of.group, &of.version, &of.name).expect("found"), of));
        assert!(!of.of.description.is_empty(), "{} has no description", of.name);
        let names: Vec<&str> = of.of.fields.iter().take(2).map(|field| &*field.name).collect();
        let silent = of.of.fields.iter().find(|field| field.description.is_empty());
        assert!(silent.is_none(), "{} has no description of {:?}", of.name, silent.map(|field| &field.name));
        assert!(names == ["kind", "apiVersion"] || of.name == "WatchEvent", "{}", of.name);
    }
    assert!(resource("apps", "v1beta1", "deployments").is_none());
    assert!(kind("", "v1", "Deployment").is_none());
}

/// Types whose fields explain themselves: their names are those of JSON Schema, which clients know.
const SELF_EXPLAINING: [&str; 1] = ["JSONSchemaProps"];
/// The least number of words with which a description says more than a name.
const WORDS_MIN: usize = 6;

/// Returns why a description explains nothing. Returns `None` if it does explain something.
fn emptiness(name: &str, description: &str) -> Option<String> {
    let letters = |text: &str| text.chars().filter(|each| each.is_alphanumeric()).collect::<String>().to_lowercase();
    if description.is_empty() {
        return Some(format!("{name} has no description"));
    }
    if letters(name.rsplit('.').next().unwrap_or(name)) == letters(description) {
        return Some(format!("{name} is described by its own name"));
    }
    let words = description.split_whitespace().count();
    (words < WORDS_MIN).then(|| format!("{name} is described by {words} words: {description}"))
}

#[test]
fn descriptions_explain() {
    let mut found = Vec::new();
    for of in types() {
        found.extend(emptiness(&of.openapi, &of.description));
        if !SELF_EXPLAINING.contains(&&*of.name) {
            let fields = of.fields.iter();
            found.extend(
                fields.filter_map(|field| emptiness(&format!("{}.{}", of.openapi, field.name), &field.description)),
            );
        }
    }
    assert!(found.is_empty(), "{} descriptions explain nothing:\n{}", found.len(), found.join("\n"));
    assert!(emptiness("Pod.exec", "Exec.").is_some() && emptiness("Pod.exec", "").is_some(), "nothing is ever found");
}

#[test]
fn every_type_is_found_and_its_wire_reaches_every_numbered_field_once() {
    fn walk(parts: &[crate::schema::Wire], seen: &mut Vec<usize>) {
        assert!(parts.windows(2).all(|pair| pair[0].number < pair[1].number));
        for wire in parts {
            match wire.part {
                WirePart::Field(index) => seen.push(index),
                WirePart::Embedded(_, parts) => walk(parts, seen),
            }
        }
    }
    for of in types() {
        assert!(std::ptr::eq(type_by_openapi(&of.openapi).expect("found"), *of));
        let mut seen = Vec::new();
        walk(of.wire, &mut seen);
        seen.sort_unstable();
        let numbered: Vec<usize> = (0..of.fields.len()).filter(|&index| of.fields[index].number > 0).collect();
        assert_eq!(seen, if of.message.is_empty() { Vec::new() } else { numbered }, "{}", of.openapi);
    }
}

#[test]
fn no_type_has_more_fields_than_the_codec_has_places() {
    let largest = types().iter().map(|of| of.fields.len()).max();
    assert!(largest <= Some(64), "{largest:?} fields");
}

#[test]
fn discovery_order_and_preference_are_kept() {
    let names: Vec<&str> = groups().iter().map(|group| group.name).collect();
    assert_eq!(&names[..4], ["", "apiregistration.k8s.io", "apps", "events.k8s.io"]);
    let autoscaling = group("autoscaling").expect("served");
    assert_eq!(autoscaling.versions.iter().map(|version| version.name).collect::<Vec<_>>(), ["v2", "v1"]);
    assert!(group("meta.k8s.io").is_none());
    assert_eq!(resources().next().expect("some").name, "bindings");
}

#[test]
fn resources_state_what_discovery_shows() {
    let pods = resource("", "v1", "pods").expect("served");
    assert!(pods.namespaced);
    assert_eq!(pods.short_names.as_ref(), ["po"]);
    assert_eq!(pods.categories.as_ref(), ["all"]);
    assert_eq!(pods.storage_hash, "xPOwRZ+Yhw8=");
    assert_eq!(pods.list_kind, "PodList");
    let eviction = pods.subresources.iter().find(|sub| sub.name == "eviction").expect("there");
    assert_eq!(eviction.response_kind, ("policy".into(), "v1".into(), "Eviction".into()));
    assert_eq!(eviction.verbs.as_ref(), ["create"]);
    assert_eq!(pods.columns[0].format, "name");
    assert_eq!(resource("networking.k8s.io", "v1", "ingresses").expect("served").singular, "ingress");
    let crds = resource("apiextensions.k8s.io", "v1", "customresourcedefinitions").expect("served");
    assert_eq!(crds.columns[1].name, "Created At");
    assert!(!crds.namespaced);
}

#[test]
fn fields_state_what_go_and_openapi_say() {
    let spec = of("io.k8s.api.core.v1.PodSpec");
    let containers = field(spec, "containers");
    assert_eq!((containers.number, containers.presence, containers.required), (2, Presence::Always, true));
    assert!(containers.patch.merge);
    assert_eq!(containers.patch.merge_key, Some("name"));
    let Shape::List(list) = &containers.shape else { panic!("a list") };
    assert_eq!(list.topology, Topology::Map(vec!["name".into()].into()));
    let ports = field(of("io.k8s.api.core.v1.Container"), "ports");
    let Shape::List(list) = &ports.shape else { panic!("a list") };
    assert_eq!(list.topology, Topology::Map(vec!["containerPort".into(), "protocol".into()].into()));
    let protocol = field(of("io.k8s.api.core.v1.ContainerPort"), "protocol");
    assert_eq!(protocol.default.as_deref(), Some("\"TCP\""));
    assert_eq!(protocol.enumeration.as_ref(), ["SCTP", "TCP", "UDP"]);
    assert!(matches!(&protocol.shape, Shape::String { named } if named == "v1.Protocol"));
    assert_eq!(field(spec, "restartPolicy").presence, Presence::OmitEmpty);
    assert_eq!(field(spec, "hostUsers").presence, Presence::Pointer);
    assert!(field(spec, "volumes").patch.retain_keys);
    let meta = of("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    assert_eq!(field(meta, "creationTimestamp").presence, Presence::OmitEmpty);
    assert_eq!(field(of("io.k8s.api.core.v1.Taint"), "key").presence, Presence::Always);
    assert!(field(of("io.k8s.api.policy.v1.PodDisruptionBudgetSpec"), "selector").patch.replace);
    let rules = field(of("io.k8s.api.rbac.v1.Role"), "rules");
    assert_eq!((rules.presence, rules.required), (Presence::Always, false));
}

#[test]
fn free_form_types_and_maps_keep_their_names() {
    let entry = of("io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry");
    assert!(matches!(field(entry, "fieldsV1").shape, Shape::Any(AnyKind::FieldsV1)));
    let resources = of("io.k8s.api.core.v1.ResourceRequirements");
    assert!(matches!(&field(resources, "limits").shape, Shape::Map(map) if map.named == "v1.ResourceList"));
    let user = of("io.k8s.api.authentication.v1.UserInfo");
    let Shape::Map(extra) = &field(user, "extra").shape else { panic!("a map") };
    assert!(matches!(&extra.value, Shape::List(list) if list.boxed && list.named == "v1.ExtraValue"));
}

#[test]
fn apply_facts_of_structs_and_fields() {
    assert!(of("io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector").atomic);
    assert!(of("io.k8s.api.core.v1.ObjectReference").atomic);
    assert!(field(of("io.k8s.api.core.v1.PersistentVolumeSpec"), "claimRef").granular);
    let selector = field(of("io.k8s.api.core.v1.ServiceSpec"), "selector");
    assert!(matches!(&selector.shape, Shape::Map(map) if map.atomic));
    let profile = of("io.k8s.api.core.v1.SeccompProfile");
    assert_eq!(profile.unions[0].discriminator, "type");
    assert_eq!(profile.unions[0].members.as_ref(), [("localhostProfile".into(), "LocalhostProfile".into())]);
}

#[test]
fn embedded_types_are_inline_in_json_and_nested_on_the_wire() {
    let volume = of("io.k8s.api.core.v1.Volume");
    assert_eq!(volume.fields[1].name, "hostPath");
    assert_eq!(volume.wire.len(), 2);
    assert!(matches!(volume.wire[1].part, WirePart::Embedded("VolumeSource", parts) if parts.len() == 30));
    let rule = of("io.k8s.api.admissionregistration.v1.NamedRuleWithOperations");
    let WirePart::Embedded(_, outer) = rule.wire[1].part else { panic!("embedded") };
    assert!(matches!(outer[1].part, WirePart::Embedded(_, inner) if inner.len() == 4));
    let pod = &kind("", "v1", "Pod").expect("a kind").of;
    assert_eq!((pod.message.as_ref(), pod.wire.len()), ("k8s.io.api.core.v1.Pod", 3));
    let table = &kind("meta.k8s.io", "v1", "Table").expect("a kind").of;
    assert!(table.message.is_empty() && table.wire.is_empty());
}
