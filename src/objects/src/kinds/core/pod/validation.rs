//! Validation of whole pods.

use flotilla_proto::value::Value;

use super::spec::{self, Options};
use super::volumes::projected;
use super::{annotations, containers};
use crate::field::{Errors, Path};

/// Checks the metadata of a pod, at creation and on every update.
pub fn metadata(pod: &Value, options: &Options, errors: &mut Errors) {
    let (notes, path) = (pod.at(&["metadata", "annotations"]), Path::root("metadata"));
    let own = pod.at(&["spec"]);
    annotations::validate(notes, own, options.any_deletion_cost, &path.child("annotations"), errors);
}

/// Checks the spec of a pod.
pub fn spec(pod: &Value, options: &Options, errors: &mut Errors) {
    let (metadata, own) = (pod.at(&["metadata"]), pod.at(&["spec"]));
    let path = Path::root("spec");
    spec::validate(own, Some(metadata), &path, options, errors);
    if own.str_at(&["serviceAccountName"]).is_empty() {
        let volumes = path.child("volumes");
        for (volume, source, _) in projected::tokens(own) {
            let volume = volumes.index(volume);
            let projected = volume.child("projected");
            let sources = projected.child("sources");
            let source = sources.index(source);
            let why = "must not be specified when serviceAccountName is not set";
            errors.forbidden(&source.child("serviceAccountToken"), why);
        }
    }
    for list in ["containers", "initContainers"] {
        let path = path.child(list);
        for (n, container) in own.list_at(&[list]).iter().enumerate() {
            containers::only_for_pod(container, &path.index(n), errors);
        }
    }
}

/// Checks a pod that is created.
pub fn create(pod: &Value, errors: &mut Errors) {
    let path = Path::root("spec");
    let options = Options::of_pod(None);
    self::metadata(pod, &options, errors);
    self::spec(pod, &options, errors);
    let own = pod.at(&["spec"]);
    if !own.list_at(&["ephemeralContainers"]).is_empty() {
        errors.forbidden(&path.child("ephemeralContainers"), "cannot be set on create");
    }
    if !own.str_at(&["nodeName"]).is_empty() && !own.list_at(&["schedulingGates"]).is_empty() {
        let why = "cannot be set until all schedulingGates have been cleared";
        errors.forbidden(&path.child("nodeName"), why);
    }
    annotations::agree_with_fields(pod.at(&["metadata", "annotations"]), own, &path, errors);
}
