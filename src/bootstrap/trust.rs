//! The trust information for aggregated API servers: the union of the existing data and of this server's.

use flotilla_proto::json;
use flotilla_proto::value::{Map, Value};

use crate::rules::key_pair::pem_blocks;

/// Keys whose texts are JSON lists.
const LISTS: [&str; 5] = [
    "requestheader-allowed-names",
    "requestheader-extra-headers-prefix",
    "requestheader-group-headers",
    "requestheader-uid-headers",
    "requestheader-username-headers",
];
/// Keys whose texts are certificates in PEM.
const BUNDLES: [&str; 2] = ["client-ca-file", "requestheader-client-ca-file"];

/// Returns the union of the existing and the wanted data. Returns `None` if the existing data cannot be parsed: its
/// writer has to repair it.
pub(super) fn combined(existing: Option<&Map>, wanted: Option<&Map>) -> Option<Map> {
    let text =
        |map: Option<&Map>, key: &str| map.and_then(|map| map.get(key)).and_then(Value::as_str).map(str::to_owned);
    let mut all = Map::new();
    let mut keys: Vec<&str> = LISTS.into_iter().chain(BUNDLES).collect();
    keys.sort_unstable();
    for key in keys {
        let (own, more) = (text(existing, key), text(wanted, key));
        let together = match (own, more) {
            (Some(own), Some(more)) if LISTS.contains(&key) => lists(&own, &more)?,
            (Some(own), Some(more)) => bundles(&own, &more)?,
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => continue,
        };
        all.insert(key, together);
    }
    Some(all)
}

fn lists(own: &str, more: &str) -> Option<String> {
    if own.is_empty() {
        return Some(more.to_owned());
    }
    let parse = |text: &str| match json::parse(text.as_bytes()) {
        Ok(Value::Array(items)) => Some(items),
        _ => None,
    };
    let (mut items, more) = (parse(own)?, parse(more)?);
    let before = items.len();
    more.into_iter().for_each(|item| {
        if !items.contains(&item) {
            items.push(item)
        }
    });
    if items.len() == before {
        return Some(own.to_owned());
    }
    Some(String::from_utf8_lossy(&json::to_vec(&Value::Array(items))).into_owned())
}

fn bundles(own: &str, more: &str) -> Option<String> {
    if own.is_empty() {
        return Some(more.to_owned());
    }
    let known = pem_blocks(own.as_bytes());
    if known.is_empty() {
        return None;
    }
    let is_missing = pem_blocks(more.as_bytes()).into_iter().any(|block| !known.contains(&block));
    Some(if is_missing { format!("{}\n{more}", own.trim_end()) } else { own.to_owned() })
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn foreign_authorities_stay_and_missing_ones_are_added() {
        let map = |value: Value| value.as_object().cloned().unwrap();
        let pem = |data: &str| format!("-----BEGIN CERTIFICATE-----\n{data}\n-----END CERTIFICATE-----\n");
        let list = "requestheader-allowed-names";
        let wanted = map(value!({"client-ca-file": (pem("MAA=")), list: "[\"a\",\"b\"]"}));
        assert_eq!(combined(None, Some(&wanted)).as_ref(), Some(&wanted));
        assert_eq!(combined(Some(&wanted), Some(&wanted)).as_ref(), Some(&wanted));
        let own = map(value!({"client-ca-file": (pem("MAE=")), list: "[\"c\",\"a\"]", "foreign": "x"}));
        let together = combined(Some(&own), Some(&wanted)).unwrap();
        assert_eq!(together.get(list).and_then(Value::as_str), Some("[\"c\",\"a\",\"b\"]"));
        let bundle = together.get("client-ca-file").and_then(Value::as_str).unwrap();
        assert_eq!(pem_blocks(bundle.as_bytes()).len(), 2);
        assert!(together.get("foreign").is_none());
        for broken in [value!({list: "no list"}), value!({"client-ca-file": "no pem"})] {
            assert_eq!(combined(Some(&map(broken)), Some(&wanted)), None);
        }
    }
}
