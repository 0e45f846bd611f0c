//! AppArmor profiles: the annotations that were used before 1.30, and the field that replaced them.

use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use crate::kinds::core::pod::create;

/// Beginning of the annotation of one container; the container's name follows.
pub const ANNOTATION_PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
const LOCALHOST: &str = "localhost/";
const RUNTIME_DEFAULT: &str = "runtime/default";
const UNCONFINED: &str = "unconfined";
/// Most bytes in the name of a local profile.
pub const PROFILE_BYTES_MAX: usize = 4095;

/// Converts the value of an annotation to that of the field. Returns `None` if it cannot be converted.
pub fn field_for_annotation(annotation: &str) -> Option<Value> {
    match annotation {
        UNCONFINED => Some(value!({"type": "Unconfined"})),
        RUNTIME_DEFAULT => Some(value!({"type": "RuntimeDefault"})),
        _ => annotation
            .strip_prefix(LOCALHOST)
            .filter(|profile| !profile.is_empty())
            .map(|profile| value!({"type": "Localhost", "localhostProfile": profile})),
    }
}

/// Returns whether an annotation's value has a known form.
pub fn is_annotation_value(value: &str) -> bool {
    matches!(value, "" | RUNTIME_DEFAULT | UNCONFINED) || value.starts_with(LOCALHOST)
}

fn is_valid(field: &Value) -> bool {
    let profile = field.str_at(&["localhostProfile"]);
    profile.trim() == profile && profile.len() <= PROFILE_BYTES_MAX
}

/// Checks that a field and an annotation state the same profile. `Err` is the name of the member that differs.
pub fn agrees(field: &Value, annotation: &str) -> Result<(), &'static str> {
    let same = match field.str_at(&["type"]) {
        "Unconfined" => annotation == UNCONFINED,
        "RuntimeDefault" => annotation == RUNTIME_DEFAULT,
        "Localhost" => match annotation.strip_prefix(LOCALHOST) {
            None => false,
            Some(profile) if field.at(&["localhostProfile"]).as_str() == Some(profile) => true,
            Some(_) => return Err("localhostProfile"),
        },
        _ => true,
    };
    if same { Ok(()) } else { Err("type") }
}

/// Sets the field of containers that have only the annotation.
pub fn fields_from_annotations(pod: &mut Value) {
    if pod.str_at(&["spec", "os", "name"]) == "windows" {
        return;
    }
    let annotated = |map: &Map| map.keys().any(|key| key.starts_with(ANNOTATION_PREFIX));
    let Some(annotations) = pod.map_at(&["metadata", "annotations"]).filter(|map| annotated(map)).cloned() else {
        return;
    };
    let of_pod = pod.at(&["spec", "securityContext", "appArmorProfile"]).clone();
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    create::for_each_container(spec, |container| {
        let name = container.get("name").and_then(Value::as_str).unwrap_or("");
        let Some(annotation) = annotations.get(&format!("{ANNOTATION_PREFIX}{name}")).and_then(Value::as_str) else {
            return;
        };
        let own = container.get("securityContext").and_then(|context| context.get("appArmorProfile"));
        let field = field_for_annotation(annotation).filter(is_valid);
        if let (None, Some(field)) = (own, field)
            && field != of_pod
            && let Some(context) = create::security_context(container)
        {
            context.insert("appArmorProfile", field);
        }
    });
}
