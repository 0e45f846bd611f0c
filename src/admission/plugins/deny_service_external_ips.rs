//! DenyServiceExternalIPs: refuses Services that add external addresses (CVE-2020-8554).

use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::status::ApiResult;

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("DenyServiceExternalIPs", Presence::Off).validating(decides_by, validate);

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    part.is_written(operation, ("", "services")).then_some(DecidesBy::Object)
}

fn validate(write: &BuiltInAttributes<'_>, service: &Value) -> ApiResult<()> {
    if adds_addresses(service, write.old) {
        return Err(write.refuse(service, "Use of external IPs is denied by admission control"));
    }
    Ok(())
}

fn adds_addresses(service: &Value, old: Option<&Value>) -> bool {
    let had = old.map_or(&[][..], |old| old.list_at(&["spec", "externalIPs"]));
    service.list_at(&["spec", "externalIPs"]).iter().any(|address| !had.contains(address))
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn existing_addresses_may_stay_or_be_removed() {
        let service = |addresses: &[&str]| {
            let addresses: Vec<Value> = addresses.iter().map(|address| Value::from(*address)).collect();
            value!({"spec": {"externalIPs": addresses}})
        };
        let old = service(&["192.0.2.1", "192.0.2.2"]);
        assert!(adds_addresses(&old, None) && !adds_addresses(&service(&[]), None));
        assert!(!adds_addresses(&service(&["192.0.2.2"]), Some(&old)));
        assert!(adds_addresses(&service(&["192.0.2.2", "192.0.2.3"]), Some(&old)));
    }
}
