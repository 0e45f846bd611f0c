//! Namespaces, the Service `kubernetes` with its addresses, and the trust information for other servers.

use std::net::IpAddr;

use flotilla_proto::value;
use flotilla_proto::value::{Map, Value};

use super::{Applied, BootstrapInput, BootstrapObject, ReconcileRule, ReconcileTrigger, SERVICE_CIDR_STATUS_MANAGER};

/// Returns the namespaces that always exist.
pub(super) fn namespaces() -> impl Iterator<Item = BootstrapObject> {
    ["kube-system", "kube-public", "kube-node-lease", "default"].into_iter().map(|name| {
        let metadata = value!({"name": name, "labels": {"kubernetes.io/metadata.name": name}});
        let object = value!({"kind": "Namespace", "apiVersion": "v1", "metadata": metadata});
        BootstrapObject::new("", "namespaces", object, ReconcileRule::Keep).reconciled(ReconcileTrigger::Missing)
    })
}

/// Returns the two priority classes for pods of the system.
pub(super) fn priority_classes() -> impl Iterator<Item = BootstrapObject> {
    let node = "For pods of the system that must stay on their node.";
    let cluster = "For pods of the system that the cluster needs but that may run on another node.";
    [("system-node-critical", 2_000_001_000_i64, node), ("system-cluster-critical", 2_000_000_000, cluster)]
        .into_iter()
        .map(|(name, value, description)| {
            let object = value!({
                "kind": "PriorityClass",
                "apiVersion": "scheduling.k8s.io/v1",
                "metadata": {"name": name},
                "value": value,
                "description": description,
                "preemptionPolicy": "PreemptLowerPriority"
            });
            BootstrapObject::new("scheduling.k8s.io", "priorityclasses", object, ReconcileRule::Keep)
        })
}

/// Returns the default range of service addresses.
pub(super) fn service_cidr(input: &BootstrapInput) -> Option<BootstrapObject> {
    if input.service_cidrs.is_empty() {
        return None;
    }
    let cidrs: Vec<Value> = input.service_cidrs.iter().map(|cidr| cidr.as_str().into()).collect();
    let object = value!({
        "kind": "ServiceCIDR",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": cidrs}
    });
    let condition = value!({
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": (input.now.as_str()),
        "message": "Kubernetes default Service CIDR is ready"
    });
    let fields = value!({"status": {"conditions": [condition]}});
    let applied = Some(Applied { manager: SERVICE_CIDR_STATUS_MANAGER, subresource: "status", fields });
    let desired = BootstrapObject::new("networking.k8s.io", "servicecidrs", object, ReconcileRule::Range)
        .reconciled(ReconcileTrigger::Always);
    Some(BootstrapObject { applied, ..desired })
}

/// Namespace and name of the ConfigMap with the date since which uses of legacy tokens are recorded.
pub const LEGACY_TOKEN_TRACKING: (&str, &str) = ("kube-system", "kube-apiserver-legacy-service-account-token-tracking");

/// Returns the ConfigMap from which aggregated API servers learn which requests to trust, and the one with the date
/// since which uses of legacy tokens are recorded.
pub(super) fn config_maps(input: &BootstrapInput) -> Vec<BootstrapObject> {
    let map = |name: &str, data: Map, rule| {
        let metadata = value!({"name": name, "namespace": "kube-system"});
        let object = value!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data});
        BootstrapObject::new("", "configmaps", object, rule).reconciled(ReconcileTrigger::Always)
    };
    let since = input.now.split('T').next().unwrap_or_default();
    let since: Map = [("since", Value::from(since))].into_iter().collect();
    let tracking = map(LEGACY_TOKEN_TRACKING.1, since, ReconcileRule::Date);
    let data = authentication_data(input);
    if data.is_empty() {
        return vec![tracking];
    }
    vec![map("extension-apiserver-authentication", data, ReconcileRule::Trust), tracking]
}

fn authentication_data(input: &BootstrapInput) -> Map {
    let mut data = Map::new();
    if let Some(ca) = &input.client_ca {
        data.insert("client-ca-file", ca.as_str());
    }
    if let Some(proxy) = &input.front_proxy {
        data.insert("requestheader-allowed-names", string_list(&proxy.allowed_names));
        data.insert("requestheader-client-ca-file", proxy.ca.as_str());
        data.insert("requestheader-extra-headers-prefix", string_list(&proxy.extra_prefixes));
        data.insert("requestheader-group-headers", string_list(&proxy.group_headers));
        if !proxy.uid_headers.is_empty() {
            data.insert("requestheader-uid-headers", string_list(&proxy.uid_headers));
        }
        data.insert("requestheader-username-headers", string_list(&proxy.username_headers));
    }
    data
}

/// Returns a list of strings as JSON.
fn string_list(items: &[String]) -> String {
    let list = Value::Array(items.iter().map(|item| item.as_str().into()).collect());
    String::from_utf8_lossy(&flotilla_proto::json::to_vec(&list)).into_owned()
}

/// Returns the Service `kubernetes`. Its address is claimed like that of any Service.
pub(super) fn kubernetes_service(input: &BootstrapInput) -> Option<BootstrapObject> {
    let address = input.service_cidrs.first().and_then(|cidr| first_address(cidr))?;
    Some(service(address, input.port))
}

/// Returns the Endpoints and the EndpointSlice with the servers behind the Service `kubernetes`: at least one, all of
/// one address family.
pub fn endpoints(addresses: &[IpAddr], port: u16) -> [BootstrapObject; 2] {
    [legacy_endpoints(addresses, port), slice(addresses, port)]
}

/// Returns the addresses in the first object of [`endpoints`].
pub fn published(endpoints: &Value) -> Vec<IpAddr> {
    let subsets = endpoints.list_at(&["subsets"]).iter();
    let addresses = subsets.flat_map(|subset| subset.list_at(&["addresses"]));
    addresses.filter_map(|address| address.str_at(&["ip"]).parse().ok()).collect()
}

/// Returns the first address after the network address of a range. Returns `None` if the text is not a range.
fn first_address(cidr: &str) -> Option<IpAddr> {
    let (address, bits) = cidr.split_once('/')?;
    let bits: u32 = bits.parse().ok()?;
    match address.parse().ok()? {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.checked_sub(bits)?).unwrap_or(0);
            Some(IpAddr::V4((u32::from(address) & mask).checked_add(1)?.into()))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.checked_sub(bits)?).unwrap_or(0);
            Some(IpAddr::V6((u128::from(address) & mask).checked_add(1)?.into()))
        }
    }
}

fn service(address: IpAddr, port: u16) -> BootstrapObject {
    let port = i64::from(port);
    let object = value!({
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"}
        },
        "spec": {
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}],
            "clusterIP": (address.to_string()),
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster"
        },
        "status": {"loadBalancer": {}}
    });
    BootstrapObject::new("", "services", object, ReconcileRule::ServicePorts).reconciled(ReconcileTrigger::Missing)
}

fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

fn legacy_endpoints(addresses: &[IpAddr], port: u16) -> BootstrapObject {
    let addresses: Vec<Value> = addresses.iter().map(|address| value!({"ip": (address.to_string())})).collect();
    let port = i64::from(port);
    let object = value!({
        "kind": "Endpoints",
        "apiVersion": "v1",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}
        },
        "subsets": [{"addresses": addresses, "ports": [{"name": "https", "port": port, "protocol": "TCP"}]}]
    });
    BootstrapObject::new("", "endpoints", object, ReconcileRule::Addresses)
}

fn slice(addresses: &[IpAddr], port: u16) -> BootstrapObject {
    let endpoints: Vec<Value> = addresses
        .iter()
        .map(|address| value!({"addresses": [(address.to_string())], "conditions": {"ready": true}}))
        .collect();
    let (family, port) = (family(addresses[0]), i64::from(port));
    let object = value!({
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "kubernetes"}
        },
        "addressType": family,
        "endpoints": endpoints,
        "ports": [{"name": "https", "protocol": "TCP", "port": port}]
    });
    BootstrapObject::new("discovery.k8s.io", "endpointslices", object, ReconcileRule::Addresses)
}
