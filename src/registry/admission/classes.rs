//! Admission of storage classes, ingress classes and priority classes, and of objects that name them; adds the
//! finalizers that protect objects in use.

use flotilla_cluster::Scope;
use flotilla_proto::quantity::Quantity;
use flotilla_proto::value::Value;

use super::Request;
use crate::kinds::admission;
use crate::status::ApiResult;

/// The annotation by which claims named their storage class before `spec.storageClassName` existed.
const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Gives a new claim the default class and a protecting finalizer (DefaultStorageClass, StorageObjectInUseProtection).
pub(super) fn claim(request: &Request<'_>, object: &mut Value) -> ApiResult<()> {
    request.by("DefaultStorageClass", || {
        if admission::needs_storage_class(object) {
            let classes = request.registry.look_up_all("storage.k8s.io", "storageclasses", Scope::All)?;
            admission::default_storage_class(object, classes.iter());
        }
        Ok(())
    })?;
    protect(request, object)
}

/// Gives a new object the finalizer that keeps it until nobody uses it (StorageObjectInUseProtection).
pub(super) fn protect(request: &Request<'_>, object: &mut Value) -> ApiResult<()> {
    request.by("StorageObjectInUseProtection", || {
        admission::protect(&request.target.served.resource.name, object);
        Ok(())
    })
}

/// Gives a new ingress the default class (DefaultIngressClass).
pub(super) fn ingress(request: &Request<'_>, object: &mut Value) -> ApiResult<()> {
    request.by("DefaultIngressClass", || {
        if admission::needs_ingress_class(object) {
            let classes = request.registry.look_up_all("networking.k8s.io", "ingressclasses", Scope::All)?;
            admission::default_ingress_class(object, classes.iter());
        }
        Ok(())
    })
}

/// Refuses a finished claim that exceeds the limits of its namespace (LimitRanger), or that grows although its class
/// does not allow it (PersistentVolumeClaimResize).
pub(super) fn finished_claim(request: &Request<'_>, object: &Value, old: Option<&Value>) -> ApiResult<()> {
    request.by("LimitRanger", || {
        if object.at(&["metadata", "deletionTimestamp"]).is_null() {
            for range in request.limit_ranges()? {
                admission::check_claim_limits(object, &range).map_err(|why| request.refuse(object, &why))?;
            }
        }
        Ok(())
    })?;
    old.map_or(Ok(()), |old| request.by("PersistentVolumeClaimResize", || grown_claim(request, object, old)))
}

/// Refuses a claim that grows although its class does not allow it.
fn grown_claim(request: &Request<'_>, object: &Value, old: &Value) -> ApiResult<()> {
    let size = |claim: &Value| Quantity::parse(claim.str_at(&["spec", "resources", "requests", "storage"]));
    match (size(old), size(object)) {
        (Ok(before), Ok(after)) if after > before => {}
        _ => return Ok(()),
    }
    let class = |claim: &Value| match claim.str_at(&["metadata", "annotations", STORAGE_CLASS]) {
        "" => claim.str_at(&["spec", "storageClassName"]).to_owned(),
        annotated => annotated.to_owned(),
    };
    let name = class(object);
    let found = match name == class(old) && !name.is_empty() {
        true => request.registry.look_up("storage.k8s.io", "storageclasses", "", &name)?,
        false => None,
    };
    if found.is_some_and(|class| class.is_true_at(&["allowVolumeExpansion"])) {
        return Ok(());
    }
    let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
               support resize";
    Err(request.refuse(object, why))
}

/// Refuses a second default priority class (Priority).
pub(super) fn priority(request: &Request<'_>, object: &Value, old: Option<&Value>) -> ApiResult<()> {
    if !object.is_true_at(&["globalDefault"]) {
        return Ok(());
    }
    request.by("Priority", || {
        let classes = request.registry.look_up_all("scheduling.k8s.io", "priorityclasses", Scope::All)?;
        let checked = admission::check_default_class(object, old.is_some(), classes.iter());
        checked.map_err(|why| request.refuse(object, &why))
    })
}
