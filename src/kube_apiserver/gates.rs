//! The features of Kubernetes 1.36 that flags may switch.

use flotilla_golang::strconv;

/// Their names, a line each, with what holds by default, and `locked` where nothing else can be chosen.
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

/// Checks what a flag wants of features: each must be one that can be switched so. Returns those that are wanted
/// otherwise than they are by default, as `name=value`; of two about one feature the last one counts.
///
/// # Errors
/// When one is not known, has no truth value, or is always as it is.
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
