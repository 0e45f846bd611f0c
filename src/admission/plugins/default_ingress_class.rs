//! DefaultIngressClass: gives a new Ingress the default class.

use flotilla_cluster::Scope;
use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::kinds::admission;
use crate::status::ApiResult;

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("DefaultIngressClass", Presence::On).mutating(decides_by, mutate);

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    let is_ingress = part.name() == ("networking.k8s.io", "ingresses", "");
    (is_ingress && operation == Operation::Create).then_some(DecidesBy::Tables)
}

fn mutate(write: &BuiltInAttributes<'_>, ingress: &mut Value) -> ApiResult<()> {
    if admission::needs_ingress_class(ingress) {
        let classes = write.admission.tables.look_up_all("networking.k8s.io", "ingressclasses", Scope::All)?;
        admission::default_ingress_class(ingress, classes.iter());
    }
    Ok(())
}
