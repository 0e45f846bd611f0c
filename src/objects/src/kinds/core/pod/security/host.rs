//! Validation of the namespaces that a pod shares with its host.

use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::kinds::core::pod::spec::{Options, for_each_container, has_host_users};

/// Checks that in the host's network `hostPort` equals the container's port.
pub fn host_network_ports(spec: &Value, path: &Path<'_>, options: &Options, errors: &mut Errors) {
    if !spec.is_true_at(&["hostNetwork"]) {
        return;
    }
    let containers = path.child("containers");
    for (n, container) in spec.list_at(&["containers"]).iter().enumerate() {
        let container_path = containers.index(n);
        let ports = container_path.child("ports");
        for (n, port) in container.list_at(&["ports"]).iter().enumerate() {
            let host = port.int_at(&["hostPort"]).unwrap_or(0);
            let differs = host != port.int_at(&["containerPort"]).unwrap_or(0);
            if differs && (options.is_pod || host != 0) {
                let why = "must match `containerPort` when `hostNetwork` is true";
                errors.invalid(&ports.index(n).child("hostPort"), &host.into(), why);
            }
        }
    }
}

/// Checks that a pod with a user namespace of its own shares no other namespace with the host.
pub fn without_host_users(spec: &Value, path: &Path<'_>, options: &Options, errors: &mut Errors) {
    const WHY: &str = "when `hostUsers` is false";
    if has_host_users(spec) {
        return;
    }
    if !options.host_network_without_host_users && spec.is_true_at(&["hostNetwork"]) {
        errors.forbidden(&path.child("hostNetwork"), WHY);
    }
    for (key, shown) in [("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.is_true_at(&[key]) {
            errors.forbidden(&path.child(shown), WHY);
        }
    }
    if !options.devices_without_host_users {
        for_each_container(spec, path, |container, path| {
            if !container.list_at(&["volumeDevices"]).is_empty() {
                errors.forbidden(&path.child("volumeDevices"), WHY);
            }
        });
    }
}
