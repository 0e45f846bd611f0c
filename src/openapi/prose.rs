//! Descriptions of types and fields: those of the catalogue, or text generated from the catalogue's facts.

use flotilla_proto::schema::{Field, Shape, Type};

/// The description of `kind`. Programs that print descriptions, and their tests, look for its first words.
pub(super) const KIND: &str = "Kind names what the object is, in CamelCase, as the API calls it; it never changes.";
/// The description of `apiVersion`.
pub(super) const API_VERSION: &str = "APIVersion defines in which group and version the object is written.";
/// The description of `metadata`.
pub(super) const METADATA: &str = "Standard object's metadata: its name, labels and what the server keeps of it.";

/// Returns the description of a field. It is empty for keywords of JSON Schema, which explain themselves.
pub(super) fn field(of: &Type, field: &Field) -> String {
    if let (Some(kind), "items") = (of.name.strip_suffix("List"), &*field.name) {
        return format!("List of {}.", several(kind));
    }
    if !field.description.is_empty() {
        return field.description.to_string();
    }
    match (&*of.name, &*field.name) {
        ("JSONSchemaProps", name) if name != "default" => String::new(),
        (_, "kind") => KIND.to_owned(),
        (_, "apiVersion") => API_VERSION.to_owned(),
        (_, "metadata") => METADATA.to_owned(),
        _ => match inner(&field.shape) {
            Some(inner) if !inner.description.is_empty() => inner.description.to_string(),
            _ => sentence(&field.name),
        },
    }
}

/// Returns the struct that a field holds, also in a list or map.
fn inner(shape: &Shape) -> Option<&Type> {
    match shape {
        Shape::Struct(of) => Some(of),
        Shape::List(list) => inner(&list.item),
        Shape::Map(map) => inner(&map.value),
        _ => None,
    }
}

/// Returns the description of a type.
pub(super) fn of_type(of: &Type) -> String {
    if of.description.is_empty() { sentence(&of.name) } else { of.description.to_string() }
}

/// Converts a name to a sentence: `progressDeadlineSeconds` to `Progress deadline seconds.`; abbreviations keep their
/// case.
pub(super) fn sentence(name: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let chars: Vec<char> = name.chars().collect();
    let lower = |at: usize| chars.get(at).is_some_and(|c| c.is_lowercase());
    // The plural of an abbreviation ends in a small letter but begins no word: `IPs`.
    let plural = |at: usize| chars.get(at) == Some(&'s') && !lower(at + 1);
    for (at, &c) in chars.iter().enumerate() {
        let begins = at == 0 || !chars[at - 1].is_uppercase() || (lower(at + 1) && !plural(at + 1));
        let starts = c.is_uppercase() && begins;
        match words.last_mut() {
            Some(word) if !starts => word.push(c),
            _ => words.push(c.to_string()),
        }
    }
    let abbreviation = |word: &str| word.chars().filter(|c| c.is_uppercase()).count() > 1;
    for (at, word) in words.iter_mut().enumerate() {
        if abbreviation(word) {
            continue;
        }
        *word = word.to_lowercase();
        if at == 0 {
            let mut rest = word.chars();
            *word = rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or_default();
        }
    }
    format!("{}.", words.join(" "))
}

/// Converts a kind to a plural in words: `NetworkPolicy` to `network policies`.
fn several(kind: &str) -> String {
    let mut words = sentence(kind);
    words.pop();
    let one = if kind.chars().nth(1).is_some_and(char::is_uppercase) { words } else { words.to_lowercase() };
    if one == "endpoints" {
        return one;
    }
    match one.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if one.ends_with(['s', 'x']) => format!("{one}es"),
        _ => format!("{one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::{sentence, several};

    #[test]
    fn kinds_become_plural() {
        for (kind, plural) in [
            ("Service", "services"),
            ("NetworkPolicy", "network policies"),
            ("IngressClass", "ingress classes"),
            ("Endpoints", "endpoints"),
            ("APIService", "API services"),
        ] {
            assert_eq!(several(kind), plural);
        }
    }

    #[test]
    fn names_become_sentences() {
        assert_eq!(sentence("progressDeadlineSeconds"), "Progress deadline seconds.");
        assert_eq!(sentence("clusterIPs"), "Cluster IPs.");
        assert_eq!(sentence("podCIDR"), "Pod CIDR.");
        assert_eq!(sentence("HTTPGetAction"), "HTTP get action.");
    }
}
