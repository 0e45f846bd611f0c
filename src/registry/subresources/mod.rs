//! Serves paths that do not lead to stored objects: parts of objects, actions on them, connections to processes behind
//! them, and reviews, which are answered and not stored.
//!
//! [`handler`] says how a path is served. Parts without an entry in the table (`status`, `resize`, ...) read and write
//! the object itself, by the rules that its strategy has for them.

mod binding;
mod budgets;
mod component_status;
mod connection;
mod eviction;
mod exec;
mod log;
mod node_proxy;
mod pod_proxy;
mod port_forward;
pub mod remote;
mod reviews;
pub mod scale;
mod service_proxy;
mod token;

pub use connection::options as connection_options;

use std::future::Future;
use std::pin::Pin;

use flotilla_proto::value;
use flotilla_proto::value::Value;
use futures_util::future::LocalBoxFuture;

use super::{Registry, Served, Target, WriteOptions};
use crate::access::Authenticator;
use crate::access::tokens::Issuer;
use crate::request::Caller;
use crate::request::query::Query;
use crate::status::{ApiError, ApiResult};
use crate::streams::Destination;

/// The handler of a path.
#[derive(Debug, Clone, Copy)]
pub enum Handler {
    /// As the object itself.
    Object,
    /// Reads and writes a `Scale` of the object.
    Scale,
    /// Runs an action on a document of the kind that discovery names.
    Act(Action),
    /// Opens a connection; there is no document.
    Connect(Connection),
    /// Opens a connection that needs the permission `create` for every method.
    Stream(Connection),
    /// Returns objects that are computed for each request.
    Shown(Shown),
}

/// The services by which actions authenticate users and issue tokens.
#[derive(Debug, Clone, Copy)]
pub struct Tokens<'a> {
    /// Finds users.
    pub authenticator: &'a Authenticator,
    /// Issues tokens of service accounts.
    pub issuer: &'a Issuer,
}

/// A request to act on a document.
#[derive(Debug)]
pub struct Call<'a> {
    /// Gives access to objects.
    pub registry: &'a Registry,
    /// Users and tokens.
    pub tokens: Tokens<'a>,
    /// The object that the path names.
    pub target: Target<'a>,
    /// The document, decoded.
    pub body: Value,
    /// Options of the write.
    pub options: &'a WriteOptions,
    /// The user, and the request's state.
    pub caller: &'a mut Caller,
}

/// The answer of an action.
#[derive(Debug)]
pub enum Acted {
    /// A Status of success.
    Done,
    /// The document, completed.
    Document(Value),
}

/// A future that lives as long as its request.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = ApiResult<T>> + 'a>>;
/// Acts on a document.
pub type Action = for<'a> fn(Call<'a>) -> Pending<'a, Acted>;

/// A request for a connection.
#[derive(Debug)]
pub struct Connect<'a> {
    /// Gives access to objects.
    pub registry: &'a Registry,
    /// The object that the path names.
    pub target: Target<'a>,
    /// Options of the connection.
    pub query: &'a Query<'a>,
    /// The path behind the subresource. `None` if there is none, which differs from an empty one.
    pub rest: Option<&'a str>,
}

/// The outcome of a request for a connection.
#[derive(Debug)]
pub enum Connected {
    /// There is nothing to read, which is not an error.
    Nothing,
    /// The request is passed on to this destination.
    To(Box<Destination>),
}

/// Decides the destination of a connection.
pub type Connection = for<'a> fn(Connect<'a>) -> Pending<'a, Connected>;
/// Returns all objects of a resource as they are now.
pub type Shown = for<'a> fn(&'a Registry) -> LocalBoxFuture<'a, Vec<Value>>;

type SubresourceEntry = (&'static str, &'static str, &'static str, Handler);

/// Group, resource, subresource; an empty subresource is the resource itself.
static HANDLERS: &[SubresourceEntry] = &[
    ("", "bindings", "", Handler::Act(binding::bind_by_name)),
    ("", "componentstatuses", "", Handler::Shown(component_status::all)),
    ("", "nodes", "proxy", Handler::Connect(node_proxy::connect)),
    ("", "pods", "attach", Handler::Stream(exec::connect)),
    ("", "pods", "binding", Handler::Act(binding::bind)),
    ("", "pods", "eviction", Handler::Act(eviction::evict)),
    ("", "pods", "exec", Handler::Stream(exec::connect)),
    ("", "pods", "log", Handler::Connect(log::connect)),
    ("", "pods", "portforward", Handler::Stream(port_forward::connect)),
    ("", "pods", "proxy", Handler::Connect(pod_proxy::connect)),
    ("", "replicationcontrollers", "scale", Handler::Scale),
    ("", "serviceaccounts", "token", Handler::Act(token::issue)),
    ("", "services", "proxy", Handler::Connect(service_proxy::connect)),
    ("apps", "deployments", "scale", Handler::Scale),
    ("apps", "replicasets", "scale", Handler::Scale),
    ("apps", "statefulsets", "scale", Handler::Scale),
    ("authentication.k8s.io", "selfsubjectreviews", "", Handler::Act(reviews::own_user)),
    ("authentication.k8s.io", "tokenreviews", "", Handler::Act(reviews::token)),
    ("authorization.k8s.io", "localsubjectaccessreviews", "", Handler::Act(reviews::local_access)),
    ("authorization.k8s.io", "selfsubjectaccessreviews", "", Handler::Act(reviews::own_access)),
    ("authorization.k8s.io", "selfsubjectrulesreviews", "", Handler::Act(reviews::own_rules)),
    ("authorization.k8s.io", "subjectaccessreviews", "", Handler::Act(reviews::access)),
];

/// Returns the handler of a resource, or of a part of it.
pub fn handler(served: &Served, subresource: &str) -> Handler {
    if served.custom.is_some() {
        return if subresource == "scale" { Handler::Scale } else { Handler::Object };
    }
    let wanted = (served.group(), &*served.resource.name, subresource);
    let found = HANDLERS.binary_search_by(|(group, resource, part, _)| (*group, *resource, *part).cmp(&wanted));
    found.map_or(Handler::Object, |at| HANDLERS[at].3)
}

/// Completes a document that is final, for validating policies and webhooks.
pub fn complete(registry: &Registry, target: Target<'_>, document: &mut Value) {
    if (target.served.group(), &*target.served.resource.name, target.subresource) == ("", "serviceaccounts", "token") {
        token::complete(registry, target, document);
    }
}

/// Returns the answer of an action that has nothing to show.
pub fn done() -> Value {
    value!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}

/// Returns a resource of the core group in which actions and connections look up objects.
fn core(registry: &Registry, resource: &str) -> ApiResult<std::sync::Arc<Served>> {
    registry.tables.resources.of_resource("", resource).ok_or_else(ApiError::no_such_path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_are_sorted_and_known_to_discovery() {
        assert!(HANDLERS.is_sorted_by_key(|(group, resource, part, _)| (*group, *resource, *part)));
        for (group, resource, part, _) in HANDLERS {
            let of = flotilla_proto::catalogue::resource(group, "v1", resource).unwrap();
            assert!(part.is_empty() || of.subresources.iter().any(|sub| sub.name == *part), "{resource}/{part}");
        }
    }
}
