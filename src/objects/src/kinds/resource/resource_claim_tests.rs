use super::*;

fn claim(devices: Value) -> Value {
    let mut claim = value!({"spec": {"devices": (devices)}});
    (STRATEGY.default)(&mut claim);
    claim
}

fn fields(errors: &Errors) -> Vec<&str> {
    errors.0.iter().map(|error| error.field.as_str()).collect()
}

#[test]
fn requests_are_completed_and_checked() {
    let claim = claim(value!({
        "requests": [{"name": "r", "exactly": {"deviceClassName": "g"}}, {"name": "r"}],
        "constraints": [{"requests": ["nope"], "matchAttribute": "a"}]
    }));
    let mode = claim.at(&["spec", "devices", "requests"]).as_array().map(|requests| requests[0].at(&["exactly"]));
    assert_eq!(mode.and_then(|exactly| exactly.int_at(&["count"])), Some(1));
    let mut errors = Errors::default();
    (STRATEGY.validate)(&claim, &mut errors);
    assert_eq!(
        fields(&errors),
        [
            "spec.devices.requests[1]",
            "spec.devices.requests[1]",
            "spec.devices.constraints[0].requests[0]",
            "spec.devices.constraints[0].matchAttribute"
        ]
    );
}

#[test]
fn deallocated_devices_lose_their_status() {
    let result = value!({"request": "r", "driver": "d.example.com", "pool": "p", "device": "d"});
    let mut old = claim(value!({"requests": [{"name": "r", "exactly": {"deviceClassName": "g"}}]}));
    old.set_at(
        &["status"],
        value!({"allocation": {"devices": {"results": [(result.clone())]}}, "devices": [(result)]}),
    );
    let mut errors = Errors::default();
    validate_status(&old, &claim(old.at(&["spec", "devices"]).clone()), &mut errors);
    assert!(errors.is_empty(), "{errors:?}");
    let mut new = old.clone();
    new.remove_at(&["status", "allocation"]);
    prepare_status(&mut new, &old);
    assert!(new.at(&["status", "devices"]).is_null());
}
