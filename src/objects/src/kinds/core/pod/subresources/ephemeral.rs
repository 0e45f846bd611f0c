//! The `ephemeralcontainers` subresource: containers may be added to a running pod, nothing else.

use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::kinds::core::pod::{annotations, dropped, update};
use crate::kinds::templates;
use crate::rules::restore::{keep, keep_metadata, put};
use crate::rules::{semantic, shown};

const LIST: [&str; 2] = ["spec", "ephemeralContainers"];

/// Restores everything except the ephemeral containers from the old pod.
pub fn prepare(pod: &mut Value, old: &Value) {
    let containers = pod.at(&LIST).clone();
    for part in ["spec", "status"] {
        keep(pod, old, &[part]);
    }
    keep_metadata(pod, old);
    put(pod, &LIST, &containers);
    dropped::drop_from_spec(pod, Some(old), &["spec"]);
    templates::set_generation(pod, old, !semantic::equal_at(pod, old, &["spec"]));
}

/// Checks that containers were only added.
pub fn validate(pod: &Value, old: &Value, errors: &mut Errors) {
    if annotations::is_mirror(old.at(&["metadata"])) {
        *errors = Errors::default();
        return errors.forbidden(&Path::root("[]"), "static pods do not support ephemeral containers");
    }
    update::common(pod, old, errors);
    let spec = Path::root("spec");
    let path = spec.child("ephemeralContainers");
    for container in old.list_at(&LIST) {
        let name = container.str_at(&["name"]);
        let quoted = crate::field::quote(name);
        match pod.list_at(&LIST).iter().rfind(|new| new.str_at(&["name"]) == name) {
            None => errors.forbidden(&path, format!("existing ephemeral containers {quoted} may not be removed\n")),
            Some(new) if !semantic::equal(new, container) => {
                let difference = shown::difference("EphemeralContainer", container, new);
                let why = format!("existing ephemeral containers {quoted} may not be changed\n{difference}");
                errors.forbidden(&path, why);
            }
            Some(_) => {}
        }
    }
}
