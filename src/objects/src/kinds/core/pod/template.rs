//! Validation of pod templates.

use flotilla_proto::value::Value;

use super::annotations;
use super::spec::{self, Options};
use crate::field::{Errors, Path};
use crate::rules::labels;

/// Checks a `PodTemplateSpec`.
pub fn validate(template: &Value, path: &Path<'_>, options: &Options, errors: &mut Errors) {
    let notes = template.at(&["metadata", "annotations"]);
    let pod = template.at(&["spec"]);
    let notes_path = path.child("annotations");
    let pod_path = path.child("spec");
    labels::validate_labels(template.at(&["metadata", "labels"]), &path.child("labels"), errors);
    labels::validate_annotations(notes, &notes_path, errors);
    annotations::validate(notes, pod, options.any_deletion_cost, &notes_path, errors);
    spec::validate(pod, None, &pod_path, options, errors);
    annotations::agree_with_fields(notes, pod, &pod_path, errors);
    if !pod.list_at(&["ephemeralContainers"]).is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        errors.forbidden(&pod_path.child("ephemeralContainers"), why);
    }
}

/// Checks the annotations of a template that have a meaning for pods.
pub fn validate_annotations(template: &Value, path: &Path<'_>, options: &Options, errors: &mut Errors) {
    let notes = template.at(&["metadata", "annotations"]);
    annotations::validate(notes, template.at(&["spec"]), options.any_deletion_cost, path, errors);
}
