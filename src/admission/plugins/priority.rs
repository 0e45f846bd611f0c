//! Priority: gives new pods the priority of their class, keeps it, and refuses a second default priority class.

use flotilla_cluster::Scope;
use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::kinds::admission;
use crate::status::ApiResult;

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("Priority", Presence::On)
    .mutating(mutating_decides_by, set_priority)
    .validating(validating_decides_by, check_default);

const GROUP: &str = "scheduling.k8s.io";
const RESOURCE: &str = "priorityclasses";

fn mutating_decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    match (part.name(), operation) {
        (("", "pods", ""), Operation::Create) => Some(DecidesBy::Tables),
        (("", "pods", ""), Operation::Update) => Some(DecidesBy::Object),
        _ => None,
    }
}

fn validating_decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    let is_written = matches!(operation, Operation::Create | Operation::Update);
    (part.name() == (GROUP, RESOURCE, "") && is_written).then_some(DecidesBy::Tables)
}

fn set_priority(write: &BuiltInAttributes<'_>, pod: &mut Value) -> ApiResult<()> {
    if let Some(old) = write.old {
        admission::keep_priority(pod, old);
        return Ok(());
    }
    let set = match pod.str_at(&["spec", "priorityClassName"]) {
        "" => {
            // Only the default class is needed.
            let is_default = "\"globalDefault\":true";
            let classes = write.admission.tables.look_up_mentioning(GROUP, RESOURCE, Scope::All, is_default)?;
            admission::set_priority(pod, None, classes.iter())
        }
        name => {
            let class = write.admission.tables.look_up(GROUP, RESOURCE, "", name)?;
            admission::set_priority(pod, class.as_ref(), std::iter::empty())
        }
    };
    set.map_err(|why| write.refuse(pod, &why))
}

fn check_default(write: &BuiltInAttributes<'_>, class: &Value) -> ApiResult<()> {
    if !class.is_true_at(&["globalDefault"]) {
        return Ok(());
    }
    let classes = write.admission.tables.look_up_all(GROUP, RESOURCE, Scope::All)?;
    let checked = admission::check_default_class(class, write.old.is_some(), classes.iter());
    checked.map_err(|why| write.refuse(class, &why))
}
