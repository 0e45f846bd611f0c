//! PersistentVolumeClaimResize: refuses a claim that grows although its class does not allow it.

use flotilla_proto::quantity::Quantity;
use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::status::ApiResult;

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("PersistentVolumeClaimResize", Presence::On).validating(decides_by, validate);

/// The annotation by which claims named their storage class before `spec.storageClassName` existed.
const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    let is_claim = part.name() == ("", "persistentvolumeclaims", "");
    (is_claim && operation == Operation::Update).then_some(DecidesBy::Tables)
}

fn validate(write: &BuiltInAttributes<'_>, claim: &Value) -> ApiResult<()> {
    let Some(old) = write.old else { return Ok(()) };
    let size = |claim: &Value| Quantity::parse(claim.str_at(&["spec", "resources", "requests", "storage"]));
    match (size(old), size(claim)) {
        (Ok(before), Ok(after)) if after > before => {}
        _ => return Ok(()),
    }
    let class = |claim: &Value| match claim.str_at(&["metadata", "annotations", STORAGE_CLASS]) {
        "" => claim.str_at(&["spec", "storageClassName"]).to_owned(),
        annotated => annotated.to_owned(),
    };
    let name = class(claim);
    let found = match name == class(old) && !name.is_empty() {
        true => write.admission.tables.look_up("storage.k8s.io", "storageclasses", "", &name)?,
        false => None,
    };
    if found.is_some_and(|class| class.is_true_at(&["allowVolumeExpansion"])) {
        return Ok(());
    }
    let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
               support resize";
    Err(write.refuse(claim, why))
}
