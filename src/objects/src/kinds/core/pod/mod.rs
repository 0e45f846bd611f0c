//! Pods, and the rules for pod templates that other kinds share with them.
//!
//! `create` and `defaults` set fields of new pods, and `dropped` removes fields of features that are off. `validation`
//! checks whole pods: `spec` checks the spec with the modules `containers`, `volumes`, `scheduling`, `security`,
//! `resources` and `network`. `update`, `status` and `subresources` define which fields each kind of write may change.

mod annotations;
mod containers;
mod create;
pub mod defaults;
pub mod dropped;
mod network;
pub mod resources;
pub mod scheduling;
mod security;
pub mod spec;
mod status;
pub mod subresources;
pub mod template;
mod update;
mod validation;
pub mod volumes;
pub mod warnings;

use flotilla_proto::value::Value;
use subresources::{ephemeral, resize};

use crate::fieldmanager::reset;
use crate::kinds::templates;
use crate::printing::{Printer, pods};
use crate::rules::Selectable;
use crate::rules::{Generation, Strategy, Subresource, semantic};

/// Rules of Pods.
pub static STRATEGY: Strategy = Strategy {
    generation: Generation::Own,
    // A `qosClass` that the client sends at creation has an effect, so `prepare_create` resets the status after reading
    // it.
    status: false,
    returns_deleted: true,
    grace_seconds: Some(grace_seconds),
    unknown_field: Some(|_, field| format!("field label not supported: {field}")),
    default: defaults::pod,
    defaults_by_member: true,
    prepare_create: create::prepare,
    prepare_update: |object, old, _| prepare_update(object, old),
    prepare_status: |object, old, _| status::prepare(object, old),
    validate: validation::create,
    validate_update: update::validate,
    validate_status: status::validate,
    warnings: |pod, old, into| {
        if old.is_none() {
            warnings::of_pod(pod, into);
        }
    },
    status_warnings: status::warn,
    subresources: &[
        (
            "ephemeralcontainers",
            Subresource { prepare: |pod, old, _| ephemeral::prepare(pod, old), validate: ephemeral::validate },
        ),
        ("resize", Subresource { prepare: |pod, old, _| resize::prepare(pod, old), validate: resize::validate }),
    ],
    selectable: SELECTABLE,
    aliases: &[("spec.host", "spec.nodeName")],
    resets: &[
        ("", reset::STATUS),
        ("status", &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]]),
    ],
    printer: Some(Printer { completion: pods::completion, reads: pods::READS, ..Printer::of(pods::pod) }),
    ..Strategy::DEFAULT
};

const SELECTABLE: &[Selectable] = &[
    ("spec.nodeName", |pod| pod.str_at(&["spec", "nodeName"]).to_owned()),
    ("spec.restartPolicy", |pod| pod.str_at(&["spec", "restartPolicy"]).to_owned()),
    ("spec.schedulerName", |pod| pod.str_at(&["spec", "schedulerName"]).to_owned()),
    ("spec.serviceAccountName", |pod| pod.str_at(&["spec", "serviceAccountName"]).to_owned()),
    ("spec.hostNetwork", |pod| pod.is_true_at(&["spec", "hostNetwork"]).to_string()),
    ("status.phase", |pod| pod.str_at(&["status", "phase"]).to_owned()),
    // The selector is accepted, but its value is empty for every pod.
    ("status.podIPs", |_| String::new()),
    ("status.podIP", |pod| {
        let first = pod.list_at(&["status", "podIPs"]).first();
        first.map_or("", |entry| entry.str_at(&["ip"])).to_owned()
    }),
    ("status.nominatedNodeName", |pod| pod.str_at(&["status", "nominatedNodeName"]).to_owned()),
];

fn prepare_update(pod: &mut Value, old: &Value) {
    match old.get("status") {
        Some(status) => pod.set_at(&["status"], status.clone()),
        None => pod.set_at(&["status"], Value::object()),
    }
    dropped::drop_from_spec(pod, Some(old), &["spec"]);
    templates::set_generation(pod, old, !semantic::equal_at(pod, old, &["spec"]));
}

/// Returns the grace period for the deletion of a pod, in seconds: the requested one, else that of its spec; 0 if the
/// pod never started or has ended. A negative period means the shortest one.
fn grace_seconds(pod: &Value, asked: Option<i64>) -> i64 {
    let idle = pod.str_at(&["spec", "nodeName"]).is_empty();
    if idle || matches!(pod.str_at(&["status", "phase"]), "Failed" | "Succeeded") {
        return 0;
    }
    let own = pod.int_at(&["spec", "terminationGracePeriodSeconds"]);
    let period = asked.or(own).unwrap_or(0);
    if period < 0 { 1 } else { period }
}

#[cfg(test)]
mod pod_tests;
