//! The features of Kubernetes 1.36 that flags may switch.

use flotilla_golang::strconv;

/// Their names, one a line.
const NAMES: &str = include_str!("feature_gates.txt");

/// Checks what a flag wants of features: each must be one, and switched on or off.
///
/// # Errors
/// When one is not known, or has no truth value.
pub fn check<'a>(pairs: impl Iterator<Item = &'a str>) -> Result<(), String> {
    for pair in pairs {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = match name.split_once(':') {
            Some(("kube", name)) => name,
            Some((component, _)) => return Err(format!("component not registered: {component}")),
            None => name,
        };
        if !NAMES.lines().any(|known| known == name) {
            return Err(format!("unrecognized feature gate: {name}"));
        }
        let wrong = |error| format!("invalid value of {name}={value}, err: {error}");
        strconv::parse_bool(value).map_err(wrong)?;
    }
    Ok(())
}
