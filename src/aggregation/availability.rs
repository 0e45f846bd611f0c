//! Checks whether aggregated servers are available, for the condition `Available` of their APIServices.

use flotilla_proto::value;
use flotilla_proto::value::Value;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::Request;
use http::header::{HOST, HeaderMap};
use tokio::time::Instant;

use super::{Aggregation, Remote, identity};
use crate::access::User;
use crate::limits;
use crate::outbound::{self};
use crate::prometheus::families;
use crate::registry::{Registry, now};
use crate::status::{ApiError, ApiResult};
use crate::tables::{services, stored_value};

/// The user that sends them.
const CHECKER: &str = "system:kube-aggregator";

/// The result of a check: status, reason and message of the condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Availability {
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl Availability {
    fn missing(reason: &'static str, message: String) -> Self {
        Self { status: "False", reason, message }
    }

    /// Returns the result for a group version that this server serves itself.
    pub fn local() -> Self {
        Self { status: "True", reason: "Local", message: "Local APIServices are always available".into() }
    }

    /// Returns the reason why the server has become unavailable. `None` if it is available, or if its APIService
    /// already says that it is not.
    pub fn is_lost(&self, object: &Value) -> Option<&'static str> {
        (self.status != "True" && is_available(object)).then_some(self.reason)
    }

    /// Returns whether the result can change only after an object changes. Otherwise the server must be checked again.
    pub fn is_settled(&self) -> bool {
        self.reason != "FailedDiscoveryCheck"
    }

    /// Returns the status of an APIService with this condition. `None` if the status stays the same.
    pub fn status(&self, object: &Value) -> Option<Value> {
        let mut conditions: Vec<Value> = object.list_at(&["status", "conditions"]).to_vec();
        let own = conditions.iter_mut().find(|condition| condition.str_at(&["type"]) == "Available");
        let mut wanted = value!({"type": "Available", "status": (self.status),
            "lastTransitionTime": (now().to_string()), "reason": (self.reason), "message": (&*self.message)});
        match own {
            Some(own) => {
                if own.str_at(&["status"]) == self.status {
                    wanted.set_at(&["lastTransitionTime"], own.at(&["lastTransitionTime"]).clone());
                }
                if *own == wanted {
                    return None;
                }
                *own = wanted;
            }
            None => conditions.push(wanted),
        }
        let mut status = object.at(&["status"]).clone();
        if status.is_null() {
            status = Value::object();
        }
        status.set_at(&["conditions"], conditions);
        Some(status)
    }
}

/// Returns whether an APIService says that its server is available.
pub fn is_available(object: &Value) -> bool {
    let mut conditions = object.list_at(&["status", "conditions"]).iter();
    conditions.any(|of| of.str_at(&["type"]) == "Available" && of.str_at(&["status"]) == "True")
}

/// Checks whether a server is available.
pub async fn look(aggregation: &Aggregation, remote: &Remote) -> Availability {
    if let Some(found) = of_service(&aggregation.registry, remote) {
        return found;
    }
    let mut attempts: FuturesUnordered<_> =
        (0..limits::AGGREGATED_CHECK_REQUESTS).map(|_| discover(aggregation, remote)).collect();
    let mut last = String::new();
    while let Some(outcome) = attempts.next().await {
        match outcome {
            Ok(()) => return Availability { status: "True", reason: "Passed", message: "all checks passed".into() },
            Err(why) => last = why,
        }
    }
    Availability::missing("FailedDiscoveryCheck", last)
}

/// Checks the Service of a server. `None` if nothing is wrong with it.
fn of_service(registry: &Registry, remote: &Remote) -> Option<Availability> {
    let Remote { namespace, service: name, port, .. } = remote;
    let quoted = crate::field::quote(namespace);
    let served = registry.tables.resources.of_resource("", "services")?;
    let Some(object) = registry.tables.current(&served, namespace, name) else {
        return Some(Availability::missing("ServiceNotFound", format!("service/{name} in {quoted} is not present")));
    };
    let service = stored_value(&object).ok()?;
    if service.str_at(&["spec", "type"]) != "ClusterIP" {
        return None;
    }
    let mut ports = service.list_at(&["spec", "ports"]).iter();
    let Some(found) = ports.find(|own| own.int_at(&["port"]) == Some(i64::from(*port))) else {
        let why = format!("service/{name} in {quoted} is not listening on port {port}");
        return Some(Availability::missing("ServicePortError", why));
    };
    let port_name = found.str_at(&["name"]);
    let slices = services::slices(&registry.tables, namespace, name);
    if slices.is_empty() {
        let why = format!("cannot find endpointslices for service/{name} in {quoted}");
        return Some(Availability::missing("EndpointsNotFound", why));
    }
    if !slices.iter().any(|slice| is_served_by(slice, port_name)) {
        let port_name = crate::field::quote(port_name);
        let why = format!("endpointslices for service/{name} in {quoted} have no addresses with port name {port_name}");
        return Some(Availability::missing("MissingEndpoints", why));
    }
    None
}

/// Returns whether a slice has a ready endpoint, and a port of this name.
fn is_served_by(slice: &Value, port_name: &str) -> bool {
    let mut endpoints = slice.list_at(&["endpoints"]).iter();
    let mut ports = slice.list_at(&["ports"]).iter();
    endpoints.any(|endpoint| endpoint.at(&["conditions", "ready"]).as_bool() != Some(false))
        && ports.any(|port| port.str_at(&["name"]) == port_name && port.int_at(&["port"]).is_some())
}

/// Requests the server's document about its group version.
async fn discover(aggregation: &Aggregation, remote: &Remote) -> Result<(), String> {
    let registry = &aggregation.registry;
    let peer = remote.peer(registry, aggregation.identity())?;
    let url = format!("https://{}{}", peer.address(), remote.path());
    let failing = |why: String| format!("failing or missing response from {url}: {why}");
    let request = ask_as_checker(&url, "").map_err(|error| failing(error.message))?;
    let deadline = Instant::now() + limits::AGGREGATED_CHECK_TIMEOUT;
    let answer = registry.tables.outbound.send(&peer, request, deadline).await;
    let answer = answer.map_err(|error| {
        if error.is_of_nameless() {
            registry.tables.metrics.meter().counter(families::AGGREGATED_NAMELESS, &[]).increment(1);
        }
        failing(format!("Get \"{url}\": {error}"))
    })?;
    match answer.status().as_u16() {
        200..300 => Ok(()),
        code => Err(failing(format!("bad status from {url}: {code}"))),
    }
}

/// Returns a request that this server makes for its own purposes.
pub(super) fn ask_as_checker(url: &str, accept: &str) -> ApiResult<Request<outbound::Body>> {
    let mut headers = HeaderMap::new();
    let groups = vec!["system:masters".into()];
    identity::set(&mut headers, &User { name: CHECKER.into(), groups, ..User::default() })?;
    let host = url.trim_start_matches("https://").split('/').next().unwrap_or_default();
    let mut request = Request::get(url).header(HOST, host);
    if !accept.is_empty() {
        request = request.header("accept", accept);
    }
    let mut request = request.body(outbound::empty()).map_err(ApiError::internal)?;
    request.headers_mut().extend(headers);
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_keep_their_time_while_they_hold() {
        let found = Availability::missing("ServiceNotFound", "gone".into());
        let first = found.status(&Value::object()).unwrap();
        let mut object = Value::object();
        object.set_at(&["status"], first);
        object.set_at(&["status", "conditions"], {
            let mut conditions = object.list_at(&["status", "conditions"]).to_vec();
            conditions[0].set_at(&["lastTransitionTime"], "2020-01-01T00:00:00Z");
            conditions
        });
        assert_eq!(found.status(&object), None);
        let time = |status: Value| status.list_at(&["conditions"])[0].str_at(&["lastTransitionTime"]).to_owned();
        let other = Availability::missing("MissingEndpoints", String::new()).status(&object).unwrap();
        assert_eq!(time(other), "2020-01-01T00:00:00Z");
        assert_ne!(time(Availability::local().status(&object).unwrap()), "2020-01-01T00:00:00Z");
    }

    #[test]
    fn endpoints_are_ready_unless_they_state_otherwise() {
        let slice = |ready: Value| value!({"endpoints": [{"conditions": {"ready": ready}}], "ports": [{"name": "https", "port": 443}]});
        assert!(is_served_by(&slice(Value::Null), "https") && is_served_by(&slice(true.into()), "https"));
        assert!(!is_served_by(&slice(false.into()), "https") && !is_served_by(&slice(true.into()), ""));
    }
}
