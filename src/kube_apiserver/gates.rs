//! The features of Kubernetes 1.36 that `--feature-gates` can switch.

use flotilla_golang::strconv;

/// The names of the features, one a line, each with its default value, and with `locked` if that cannot be changed.
const GATES: &str = include_str!("feature_gates.txt");

/// A feature.
struct Gate {
    default: bool,
    locked: bool,
}

fn find(name: &str) -> Option<Gate> {
    let mut words = GATES.lines().map(str::split_whitespace).find(|words| words.clone().next() == Some(name))?;
    let default = words.nth(1) == Some("true");
    Some(Gate { default, locked: words.next().is_some() })
}

/// Checks the values of `--feature-gates`: each feature must exist and allow the value. Returns the features whose
/// value differs from the default, as `name=value`; of two values for one feature the last one counts.
///
/// # Errors
/// If a feature is unknown, its value is not a truth value, or its value is locked.
pub fn check(pairs: &[String]) -> Result<Vec<String>, String> {
    let mut others: Vec<(&str, bool)> = Vec::new();
    for pair in pairs {
        let (name, value) = match pair.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (pair.as_str(), None),
        };
        let name = match name.split_once(':') {
            Some(("kube", name)) => name,
            Some((component, _)) => return Err(format!("component not registered: {component}")),
            None => name,
        };
        let value = value.ok_or_else(|| format!("missing bool value for {name}"))?;
        let gate = find(name).ok_or_else(|| format!("unrecognized feature gate: {name}"))?;
        let on =
            strconv::parse_bool(value).map_err(|error| format!("invalid value of {name}={value}, err: {error}"))?;
        if gate.locked && on != gate.default {
            let locked = gate.default;
            return Err(format!("cannot set feature gate {name} to {on}, feature is locked to {locked}"));
        }
        others.retain(|(other, _)| *other != name);
        if on != gate.default {
            others.push((name, on));
        }
    }
    Ok(others.into_iter().map(|(name, on)| format!("{name}={on}")).collect())
}
