//! Reaching what runs on nodes.

use flotilla_proto::value::Value;

use super::core;
use crate::outbound::{Error, dial};
use crate::registry::{Registry, stored_value};
use crate::status::{ApiError, ApiResult};

/// Kinds of addresses, in the order in which nodes are reached by them.
const ADDRESS_TYPES: [&str; 5] = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];
/// Port of kubelets that do not tell theirs.
const KUBELET_PORT: i64 = 10_250;

/// Where the kubelet of a node listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kubelet {
    /// Name or address of the node.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// Finds a node's kubelet. `resource` is the one of the request, by which the reference's errors call the node.
pub fn kubelet(registry: &Registry, node: &str, resource: &str) -> ApiResult<Kubelet> {
    let object = registry.current(&*core(registry, "nodes")?, "", node);
    let object = object.ok_or_else(|| ApiError::not_found("", resource, node))?;
    kubelet_of(&stored_value(&object)?)
}

fn kubelet_of(node: &Value) -> ApiResult<Kubelet> {
    let addresses = node.list_at(&["status", "addresses"]);
    let of_type = |kind: &&str| addresses.iter().find(|address| address.str_at(&["type"]) == *kind);
    let Some(address) = ADDRESS_TYPES.iter().find_map(of_type) else {
        let known: Vec<String> = addresses
            .iter()
            .map(|address| format!("{{{} {}}}", address.str_at(&["type"]), address.str_at(&["address"])))
            .collect();
        let why = format!("no preferred addresses found; known addresses: [{}]", known.join(" "));
        return Err(ApiError::unknown(why));
    };
    let stated = node.int_at(&["status", "daemonEndpoints", "kubeletEndpoint", "Port"]).filter(|port| *port > 0);
    let port = u16::try_from(stated.unwrap_or(KUBELET_PORT)).unwrap_or_default();
    Ok(Kubelet { host: address.str_at(&["address"]).to_owned(), port })
}

/// 501: the other side answers, but the server does not speak with it yet.
pub fn not_spoken(what: &str) -> ApiError {
    ApiError::new(501, "NotImplemented", format!("the server cannot pass on {what} yet"))
}

/// Passes an HTTP request on.
pub async fn pass_on(host: &str, port: u16) -> ApiError {
    match dial(host, port, true).await {
        Err(Error::Forbidden) => ApiError::bad_request(Error::Forbidden.to_string()),
        Err(why) => ApiError::new(503, "ServiceUnavailable", format!("error trying to reach service: {why}")),
        Ok(_) => not_spoken("HTTP requests"),
    }
}

/// Scheme, name and port of `[scheme:]name[:port]`; `None` when it is none of these.
pub fn split_name(text: &str) -> Option<(&str, &str, &str)> {
    let parts: Vec<&str> = text.split(':').collect();
    let (scheme, name, port) = match parts.as_slice() {
        [name] => ("", *name, ""),
        [name, port] => ("", *name, *port),
        [scheme, name, port] => (*scheme, *name, *port),
        _ => return None,
    };
    (!name.is_empty() && matches!(scheme, "" | "http" | "https")).then_some((scheme, name, port))
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn names_with_scheme_and_port() {
        assert_eq!(split_name("a"), Some(("", "a", "")));
        assert_eq!(split_name("a:1"), Some(("", "a", "1")));
        assert_eq!(split_name("https:a:x"), Some(("https", "a", "x")));
        for bad in ["", "x:a:1", "a:b:c:d", ":1"] {
            assert_eq!(split_name(bad), None, "{bad}");
        }
    }

    #[test]
    fn kubelets() {
        let node = value!({"status": {
            "addresses": [{"type": "ExternalIP", "address": "1.1.1.1"}, {"type": "InternalIP", "address": "1.1.1.2"}]
        }});
        assert_eq!(kubelet_of(&node).unwrap(), Kubelet { host: "1.1.1.2".into(), port: 10_250 });
        let error = kubelet_of(&value!({"status": {}})).unwrap_err();
        assert_eq!((error.code, &*error.message), (500, "no preferred addresses found; known addresses: []"));
    }
}
