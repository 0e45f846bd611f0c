//! DefaultStorageClass: gives a new PersistentVolumeClaim the default class.

use flotilla_cluster::Scope;
use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::kinds::admission;
use crate::status::ApiResult;

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("DefaultStorageClass", Presence::On).mutating(decides_by, mutate);

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    let is_claim = part.name() == ("", "persistentvolumeclaims", "");
    (is_claim && operation == Operation::Create).then_some(DecidesBy::Tables)
}

fn mutate(write: &BuiltInAttributes<'_>, claim: &mut Value) -> ApiResult<()> {
    if admission::needs_storage_class(claim) {
        let classes = write.admission.tables.look_up_all("storage.k8s.io", "storageclasses", Scope::All)?;
        admission::default_storage_class(claim, classes.iter());
    }
    Ok(())
}
