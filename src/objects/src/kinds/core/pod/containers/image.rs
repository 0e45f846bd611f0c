//! Parses image references, as far as the default pull policy depends on them (distribution's reference grammar).

/// Longest name of a repository with its registry, in bytes.
const NAME_MAX: usize = 255;
/// Longest tag, in bytes.
const TAG_MAX: usize = 128;

/// Returns whether an image is pulled under the tag `latest`: its reference has that tag, or neither a tag nor a
/// digest. Returns false if the reference cannot be parsed.
pub fn is_latest(image: &str) -> bool {
    parse(image).is_some_and(|(tag, digest)| if tag.is_empty() { digest.is_empty() } else { tag == "latest" })
}

/// Returns the tag and digest of a reference, either of which may be empty. Returns `None` if the reference is invalid.
fn parse(image: &str) -> Option<(&str, &str)> {
    if image.len() == 64 && image.bytes().all(|b| matches!(b, b'a'..=b'f' | b'0'..=b'9')) {
        return None;
    }
    let (domain, rest) = split_domain(image);
    let (rest, digest) = match rest.split_once('@') {
        Some((_, "")) => return None,
        Some((rest, digest)) => (rest, digest),
        None => (rest, ""),
    };
    let (name, tag) = match rest.split_once(':') {
        Some((_, "")) => return None,
        Some((name, tag)) => (name, tag),
        None => (rest, ""),
    };
    let short = domain == "docker.io" && !name.contains('/');
    let length = domain.len() + 1 + name.len() + if short { "library/".len() } else { 0 };
    let valid = is_domain(domain)
        && name.split('/').all(is_component)
        && length <= NAME_MAX
        && (tag.is_empty() || is_tag(tag))
        && (digest.is_empty() || is_digest(digest));
    valid.then_some((tag, digest))
}

/// Splits off the registry: the first part is one if it has a dot, a port or a capital, or is `localhost`; otherwise
/// Docker Hub is meant.
fn split_domain(image: &str) -> (&str, &str) {
    match image.split_once('/') {
        Some((domain, rest))
            if domain.contains(['.', ':'])
                || domain == "localhost"
                || domain.bytes().any(|b| b.is_ascii_uppercase()) =>
        {
            (if domain == "index.docker.io" { "docker.io" } else { domain }, rest)
        }
        _ => ("docker.io", image),
    }
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => {
            let valid = !address.is_empty() && address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':');
            return valid && port.strip_prefix(':').map_or(port.is_empty(), is_port);
        }
        None => domain.split_once(':').map_or((domain, None), |(host, port)| (host, Some(port))),
    };
    let label = |label: &str| {
        let bytes = label.as_bytes();
        !bytes.is_empty()
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
            && bytes[0] != b'-'
            && bytes[bytes.len() - 1] != b'-'
    };
    host.split('.').all(label) && port.is_none_or(is_port)
}

fn is_port(port: &str) -> bool {
    !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit())
}

/// Returns whether a part of a name is made of lower-case words joined by one dot, one or two underscores, or any
/// number of dashes.
fn is_component(component: &str) -> bool {
    let bytes = component.as_bytes();
    let word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let mut at = 0;
    loop {
        let start = at;
        while at < bytes.len() && word(bytes[at]) {
            at += 1;
        }
        if at == start {
            return false;
        }
        if at == bytes.len() {
            return true;
        }
        match bytes[at] {
            b'.' => at += 1,
            b'_' => at += if bytes.get(at + 1) == Some(&b'_') { 2 } else { 1 },
            b'-' => {
                while bytes.get(at) == Some(&b'-') {
                    at += 1;
                }
            }
            _ => return false,
        }
    }
}

fn is_tag(tag: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    tag.len() <= TAG_MAX && word(tag.as_bytes()[0]) && tag.bytes().all(|b| word(b) || b == b'.' || b == b'-')
}

fn is_digest(digest: &str) -> bool {
    let length = match digest.split_once(':') {
        Some(("sha256", _)) => 64,
        Some(("sha384", _)) => 96,
        Some(("sha512", _)) => 128,
        _ => return false,
    };
    let hex = digest.split_once(':').map_or("", |(_, hex)| hex);
    hex.len() == length && hex.bytes().all(|b| matches!(b, b'a'..=b'f' | b'0'..=b'9'))
}

#[cfg(test)]
mod tests {
    use super::is_latest;

    #[test]
    fn only_latest_and_untagged_images_are_latest() {
        for image in ["nginx", "nginx:latest", "library/nginx", "registry.k8s.io:5000/a/b__c", "localhost/x"] {
            assert!(is_latest(image), "{image}");
        }
        let digest = format!("nginx@sha256:{}", "a".repeat(64));
        let hex = "a".repeat(64);
        let others = ["", "nginx:1.27", "Nginx", "a//b", "nginx:", "a..b", &digest, &hex, "a:b:c", "docker.io/Foo"];
        for image in others {
            assert!(!is_latest(image), "{image}");
        }
    }
}
