//! Classes of storage, ingress and priority, and the guards of what is in use.

use flotilla_cluster::Scope;
use flotilla_proto::value::Value;

use super::Request;
use crate::kinds::admission;
use crate::status::ApiResult;

/// A new claim gets the default class and its guard (DefaultStorageClass, StorageObjectInUseProtection).
pub(super) fn claim(request: &Request<'_>, object: &mut Value) -> ApiResult<()> {
    if admission::needs_storage_class(object) {
        let classes = request.registry.look_up_all("storage.k8s.io", "storageclasses", Scope::All)?;
        admission::default_storage_class(object, classes.iter());
    }
    protect(request, object)
}

/// A new object gets the finalizer that keeps it until nobody uses it (StorageObjectInUseProtection).
pub(super) fn protect(request: &Request<'_>, object: &mut Value) -> ApiResult<()> {
    admission::protect(&request.target.served.resource.name, object);
    Ok(())
}

/// A new ingress gets the default class (DefaultIngressClass).
pub(super) fn ingress(request: &Request<'_>, object: &mut Value) -> ApiResult<()> {
    if admission::needs_ingress_class(object) {
        let classes = request.registry.look_up_all("networking.k8s.io", "ingressclasses", Scope::All)?;
        admission::default_ingress_class(object, classes.iter());
    }
    Ok(())
}

/// At most one priority class is the default one (Priority).
pub(super) fn priority(request: &Request<'_>, object: &Value, old: Option<&Value>) -> ApiResult<()> {
    if !object.is_true_at(&["globalDefault"]) {
        return Ok(());
    }
    let classes = request.registry.look_up_all("scheduling.k8s.io", "priorityclasses", Scope::All)?;
    admission::check_default_class(object, old.is_some(), classes.iter()).map_err(|why| request.refuse(object, &why))
}
