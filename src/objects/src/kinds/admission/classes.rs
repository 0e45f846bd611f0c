//! Default classes of storage and ingress for objects that name none, and finalizers that protect objects in use
//! (plugins DefaultStorageClass, DefaultIngressClass, StorageObjectInUseProtection).

use std::cmp::Reverse;

use flotilla_proto::value::Value;

use crate::rules::protection::{Protection, add_finalizer};

const STORAGE_DEFAULT: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
const INGRESS_DEFAULT: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];

/// Returns the name of the default class: of several the newest, then the first by name. `None` if no class is marked
/// as the default.
fn default_of<'a>(classes: impl Iterator<Item = &'a Value>, marks: &[&str]) -> Option<&'a str> {
    let is_default =
        |class: &&Value| marks.iter().any(|mark| class.str_at(&["metadata", "annotations", mark]) == "true");
    let name = |class: &'a Value| class.str_at(&["metadata", "name"]);
    let age = |class: &&'a Value| (Reverse(class.str_at(&["metadata", "creationTimestamp"])), name(class));
    classes.filter(is_default).min_by_key(age).map(name)
}

/// Returns whether a new claim states no class.
pub fn needs_storage_class(claim: &Value) -> bool {
    let old = claim.at(&["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]);
    claim.at(&["spec", "storageClassName"]).is_null() && old.is_null()
}

/// Gives a claim the default class, if there is one.
pub fn default_storage_class<'a>(claim: &mut Value, classes: impl Iterator<Item = &'a Value>) {
    if let Some(name) = default_of(classes, &STORAGE_DEFAULT) {
        claim.set_at(&["spec", "storageClassName"], name);
    }
}

/// Returns whether a new ingress states no class.
pub fn needs_ingress_class(ingress: &Value) -> bool {
    let old = ingress.at(&["metadata", "annotations", "kubernetes.io/ingress.class"]);
    ingress.at(&["spec", "ingressClassName"]).is_null() && old.is_null()
}

/// Gives an ingress the default class, if there is one.
pub fn default_ingress_class<'a>(ingress: &mut Value, classes: impl Iterator<Item = &'a Value>) {
    if let Some(name) = default_of(classes, &INGRESS_DEFAULT) {
        ingress.set_at(&["spec", "ingressClassName"], name);
    }
}

/// Adds the finalizer that keeps an object from being removed while others use it.
pub fn protect(protection: &Protection, object: &mut Value) {
    add_finalizer(object, protection.finalizer);
}
