//! Validation of the fields that depend on the operating system of a pod.

use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::kinds::core::pod::spec::{Options, for_each_container};
use crate::rules::names;

/// Most KiB in a GMSA credential spec.
const CREDENTIAL_KIB_MAX: usize = 64;
/// The domain of a user must have fewer bytes than this.
const DOMAIN_BYTES_END: usize = 256;
/// Longest name of a user.
const USER_BYTES_MAX: usize = 104;

/// Checks `windowsOptions`.
pub fn validate_options(options: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(name) = options.at(&["gmsaCredentialSpecName"]).as_str() {
        names::check(&path.child("gmsaCredentialSpecName"), name, names::dns1123_subdomain, errors);
    }
    if let Some(spec) = options.at(&["gmsaCredentialSpec"]).as_str() {
        let path = path.child("gmsaCredentialSpec");
        if spec.is_empty() {
            errors.invalid_str(&path, spec, "gmsaCredentialSpec cannot be an empty string");
        } else if spec.len() > CREDENTIAL_KIB_MAX << 10 {
            let why = format!("gmsaCredentialSpec size must be under {CREDENTIAL_KIB_MAX} KiB");
            errors.invalid_str(&path, spec, why);
        }
    }
    if let Some(name) = options.at(&["runAsUserName"]).as_str() {
        user_name(name, &path.child("runAsUserName"), errors);
    }
}

fn user_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    let mut refuse = |why: String| errors.invalid_str(path, name, format!("runAsUserName{why}"));
    if name.is_empty() {
        return refuse(" cannot be an empty string".into());
    }
    if name.bytes().any(|b| b.is_ascii_control()) {
        return refuse(" cannot contain control characters".into());
    }
    let (domain, user) = match name.split_once('\\') {
        Some((_, user)) if user.contains('\\') => return refuse(" cannot contain more than one backslash".into()),
        Some((domain, user)) => (Some(domain), user),
        None => (None, name),
    };
    if let Some(domain) = domain {
        if domain.len() >= DOMAIN_BYTES_END {
            refuse(format!("'s Domain length must be under {DOMAIN_BYTES_END} characters"));
        }
        if !is_net_bios_name(domain) && !is_domain_name(domain) {
            refuse("'s Domain doesn't match the NetBios nor the DNS format".into());
        }
    }
    if user.is_empty() {
        refuse("'s User cannot be empty".into());
    } else if user.len() > USER_BYTES_MAX {
        refuse(format!("'s User length must not be longer than {USER_BYTES_MAX} characters"));
    }
    if !user.is_empty() && user.bytes().all(|b| matches!(b, b'.' | b' ')) {
        refuse("'s User cannot contain only periods or spaces".into());
    }
    if user.contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']']) {
        refuse("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]".into());
    }
}

fn is_net_bios_name(name: &str) -> bool {
    let length = name.chars().count();
    (1..=15).contains(&length)
        && !name.starts_with('.')
        && !name.contains(['\\', '/', ':', '*', '?', '"', '<', '>', '|'])
}

fn is_domain_name(name: &str) -> bool {
    name.split('.').all(|label| {
        let bytes = label.as_bytes();
        (1..=63).contains(&bytes.len())
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
            && bytes[0] != b'-'
            && bytes[bytes.len() - 1] != b'-'
    })
}

/// Checks that either all or no containers run as processes of a Windows host.
pub fn host_process(spec: &Value, path: &Path<'_>, options: &Options, errors: &mut Errors) {
    const OPTION: [&str; 3] = ["securityContext", "windowsOptions", "hostProcess"];
    let of_pod = spec.at(&OPTION).as_bool();
    let (mut all, mut host) = (0, 0);
    for_each_container(spec, path, |container, path| {
        let own = container.at(&OPTION).as_bool();
        all += 1;
        host += usize::from(own.or(of_pod).unwrap_or(false));
        if let (Some(pod), Some(own)) = (of_pod, own)
            && pod != own
        {
            let why = format!("pod hostProcess value must be identical if both are specified, was {pod}");
            let context = path.child(OPTION[0]);
            let options = context.child(OPTION[1]);
            errors.invalid(&options.child(OPTION[2]), &own.into(), why);
        }
    });
    if host == 0 {
        return;
    }
    if host != all {
        let why = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.invalid_str(path, "", why);
    }
    if !spec.is_true_at(&["hostNetwork"]) {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.invalid(&path.child("hostNetwork"), &false.into(), why);
    }
    if options.no_privileged {
        errors.forbidden(path, "hostProcess containers are disallowed by cluster policy");
    }
}

/// Checks that a pod for Linux has no options of Windows.
pub fn validate_linux(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    const WHY: &str = "windows options cannot be set for a linux pod";
    let mut check = |holder: &Value, path: &Path<'_>| {
        if !holder.at(&["securityContext", "windowsOptions"]).is_null() {
            errors.forbidden(&path.child("securityContext").child("windowsOptions"), WHY);
        }
    };
    check(spec, path);
    for_each_container(spec, path, check);
}

/// Checks that a pod for Windows has no options of Linux.
pub fn validate_windows(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    const WHY: &str = "cannot be set for a windows pod";
    let context_path = path.child("securityContext");
    let context = spec.at(&["securityContext"]);
    for (of_context, key) in [
        (true, "appArmorProfile"),
        (true, "seLinuxOptions"),
        (false, "hostUsers"),
        (false, "hostPID"),
        (false, "hostIPC"),
        (true, "seccompProfile"),
        (true, "fsGroup"),
        (true, "fsGroupChangePolicy"),
        (true, "sysctls"),
        (false, "shareProcessNamespace"),
        (true, "runAsUser"),
        (true, "runAsGroup"),
        (true, "supplementalGroups"),
        (true, "supplementalGroupsPolicy"),
        (true, "seLinuxChangePolicy"),
    ] {
        let (holder, path) = if of_context { (context, &context_path) } else { (spec, path) };
        let value = holder.at(&[key]);
        let is_off = matches!(key, "hostPID" | "hostIPC") && value == &Value::Bool(false);
        if !value.is_null() && !is_off {
            errors.forbidden(&path.child(key), WHY);
        }
    }
    for_each_container(spec, path, |container, path| {
        let context = path.child("securityContext");
        for key in [
            "appArmorProfile",
            "seLinuxOptions",
            "seccompProfile",
            "capabilities",
            "readOnlyRootFilesystem",
            "privileged",
            "allowPrivilegeEscalation",
            "procMount",
            "runAsUser",
            "runAsGroup",
        ] {
            if !container.at(&["securityContext", key]).is_null() {
                errors.forbidden(&context.child(key), WHY);
            }
        }
    });
}
