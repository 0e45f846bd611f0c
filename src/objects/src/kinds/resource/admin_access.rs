//! Access to devices as an administrator (KEP-5018): claims ask for it, and allocations grant it.

use flotilla_proto::value::Value;

fn is_asked_or_granted(of: &Value) -> bool {
    of.at(&["adminAccess"]).as_bool() == Some(true)
}

/// Returns the position of the first request of a claim or template that asks for this access. `devices` is the part of
/// the spec about devices.
pub fn asked(devices: &Value) -> Option<usize> {
    devices.list_at(&["requests"]).iter().map(|request| request.at(&["exactly"])).position(is_asked_or_granted)
}

/// Returns the position of the first result in the status of a claim that grants this access. Returns `None` if there
/// is no such result, or the stored claim already had one.
pub fn granted(claim: &Value, old: &Value) -> Option<usize> {
    let first = |claim: &Value| {
        claim.list_at(&["status", "allocation", "devices", "results"]).iter().position(is_asked_or_granted)
    };
    first(claim).filter(|_| first(old).is_none())
}
