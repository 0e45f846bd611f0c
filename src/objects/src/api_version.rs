//! The parts and the order of API versions.

use std::cmp::Ordering;

/// Splits an `apiVersion` into group and version. `v1` has the empty group, which is the core group.
pub fn split(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// Returns the group of an `apiVersion`. The core group is empty.
pub fn group(api_version: &str) -> &str {
    split(api_version).0
}

/// Orders version names as Kubernetes does, the preferred one first: stable before beta before alpha, higher numbers
/// first; names of another form come last, in alphabetical order (Kubernetes documentation, "Versions in
/// CustomResourceDefinitions").
pub fn compare(a: &str, b: &str) -> Ordering {
    match (parts(a), parts(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// Returns stability, major and minor number of a version such as `v2beta1`; `None` for names of another form.
fn parts(version: &str) -> Option<(u8, u32, u32)> {
    let rest = version.strip_prefix('v')?;
    let split = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let major = number(&rest[..split])?;
    match &rest[split..] {
        "" => Some((3, major, 0)),
        tail => {
            let (stability, minor) = match tail.strip_prefix("beta") {
                Some(minor) => (2, minor),
                None => (1, tail.strip_prefix("alpha")?),
            };
            Some((stability, major, number(minor)?))
        }
    }
}

fn number(text: &str) -> Option<u32> {
    if text.is_empty() || text.starts_with('0') || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_names_have_the_order_of_kubernetes() {
        let mut names = [
            "foo1",
            "v3beta1",
            "v12alpha1",
            "v11beta2",
            "v10beta3",
            "v1",
            "v2",
            "v10",
            "foo10",
            "v11alpha2",
            "v12alpha10",
        ];
        names.sort_by(|a, b| compare(a, b));
        let wanted = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha10",
            "v12alpha1",
            "v11alpha2",
            "foo1",
            "foo10",
        ];
        assert_eq!(names, wanted);
    }
}
