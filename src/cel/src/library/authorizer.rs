//! `authorizer`: checks of permissions. The server provides the answers.

use std::sync::Arc;

use flotilla_proto::names;

use super::table::{overload, unfit};
use crate::cost::{CallEstimate, Cost, CostRange, LIST, NOMINAL, Nodes, OBJECT, SizeRange, TEXT, size_of};
use crate::error::{Error, Outcome};
use crate::functions::{Function, Library, Since};
use crate::types::Type;
use crate::value::{Opaque, Value};

macro_rules! check {
    ($name:literal) => {
        concat!("kubernetes.authorization.", $name)
    };
}

/// A function that adds a part to a check.
macro_rules! refined {
    ($name:literal, $id:literal, $cost:ident, |$check:ident, $text:ident| $set:expr) => {
        Function {
            name: $name,
            overloads: &[overload(
                $id,
                concat!(check!("ResourceCheck"), ".(string): ", check!("ResourceCheck")),
                $cost,
                |arguments| refine(arguments, |$check, $text| $set),
            )],
        }
    };
}

/// A function that returns a part of a decision.
macro_rules! decided {
    ($name:literal, $id:literal, $result:literal, |$decision:ident| $part:expr) => {
        Function {
            name: $name,
            overloads: &[overload($id, concat!(check!("Decision"), ".(): ", $result), NOMINAL, |arguments| {
                tell(arguments, |$decision| $part)
            })],
        }
    };
}

/// Kubernetes calls it `kubernetes.authz`.
pub static LIBRARY: Library = Library {
    name: "kubernetes.authz",
    since: Since::Minor(27),
    functions: &[
        Function {
            name: "path",
            overloads: &[overload(
                "authorizer_path",
                concat!(check!("Authorizer"), ".(string): ", check!("PathCheck")),
                NOMINAL,
                path,
            )],
        },
        Function {
            name: "group",
            overloads: &[overload(
                "authorizer_group",
                concat!(check!("Authorizer"), ".(string): ", check!("GroupCheck")),
                NOMINAL,
                group,
            )],
        },
        Function {
            name: "serviceAccount",
            overloads: &[overload(
                "authorizer_serviceaccount",
                concat!(check!("Authorizer"), ".(string, string): ", check!("Authorizer")),
                NOMINAL,
                service_account,
            )],
        },
        Function {
            name: "resource",
            overloads: &[overload(
                "groupcheck_resource",
                concat!(check!("GroupCheck"), ".(string): ", check!("ResourceCheck")),
                NOMINAL,
                resource,
            )],
        },
        refined!("subresource", "resourcecheck_subresource", NOMINAL, |check, text| check.subresource = text),
        refined!("namespace", "resourcecheck_namespace", NOMINAL, |check, text| check.namespace = text),
        refined!("name", "resourcecheck_name", NOMINAL, |check, text| check.name = text),
        Function {
            name: "check",
            overloads: &[
                overload(
                    "pathcheck_check",
                    concat!(check!("PathCheck"), ".(string): ", check!("Decision")),
                    CHECKED,
                    ask,
                ),
                overload(
                    "resourcecheck_check",
                    concat!(check!("ResourceCheck"), ".(string): ", check!("Decision")),
                    CHECKED,
                    ask,
                ),
            ],
        },
        decided!("errored", "decision_errored", "bool", |decision| decision.error.is_some().into()),
        decided!("error", "decision_error", "string", |decision| decision.error.clone().unwrap_or_default().into()),
        decided!("allowed", "decision_allowed", "bool", |decision| decision.is_allowed.into()),
        decided!("reason", "decision_reason", "string", |decision| decision.reason.clone().into()),
    ],
};

/// Kubernetes calls it `kubernetes.authzSelectors`.
pub static SELECTORS: Library = Library {
    name: "kubernetes.authzSelectors",
    since: Since::Minor(31),
    functions: &[
        refined!("fieldSelector", "authorizer_fieldselector", SELECTED, |check, text| check.field_selector = text),
        refined!("labelSelector", "authorizer_labelselector", SELECTED, |check, text| check.label_selector = text),
    ],
};

/// Cost of a check: two fit into the limit of an expression.
const CHECK: u64 = 350_000;

const CHECKED: Cost =
    Cost { estimate: |_| Some(CallEstimate::of(CostRange::fixed(CHECK))), actual: |_, _| CHECK, by_name: true };
/// Cost of a selector: it is parsed, and each of its requirements creates a list and an object.
const SELECTED: Cost = Cost {
    estimate: |nodes: &Nodes<'_>| {
        let [selector] = nodes.arguments else { return None };
        Some(CallEstimate::of(selector_cost(nodes.size(selector))))
    },
    actual: |arguments, _| match arguments {
        [_, selector] => selector_cost(SizeRange::fixed(size_of(selector))).max,
        _ => 1,
    },
    by_name: true,
};

fn selector_cost(size: SizeRange) -> CostRange {
    // The shortest requirement has two characters.
    let requirements = size.scaled(0.5).scaled((LIST + OBJECT) as f64);
    CostRange::fixed(LIST).add(size.scaled(TEXT)).add(requirements)
}

/// The source of decisions: the server.
pub trait Authorizer: std::fmt::Debug + Send + Sync {
    /// Decides whether the service account may do this. If there is none, decides whether the requesting user may.
    fn authorize(&self, account: Option<&ServiceAccount>, action: &CheckedAction) -> Decision;
}

/// The service account whose permissions are checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceAccount {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The action whose permission is checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CheckedAction {
    /// A verb on a path.
    Path {
        /// The path.
        path: String,
        /// The verb of a request.
        verb: String,
    },
    /// A verb on a resource.
    Resource {
        /// The resource.
        resource: Box<Resource>,
        /// The verb of the API.
        verb: String,
    },
}

/// The resource in a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Resource {
    /// Its group.
    pub group: String,
    /// Its plural name.
    pub resource: String,
    /// A subresource; empty for none.
    pub subresource: String,
    /// A namespace; empty for all.
    pub namespace: String,
    /// A name; empty for all.
    pub name: String,
    /// A selector of fields; empty for none.
    pub field_selector: String,
    /// A selector of labels; empty for none.
    pub label_selector: String,
}

/// The answer to a check: whether the user may do this.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub is_allowed: bool,
    /// Why.
    pub reason: String,
    /// The error, if the decision failed.
    pub error: Option<String>,
}

/// An authorizer, and the service account in the place of the requesting user.
#[derive(Clone, Debug)]
struct CheckedUser {
    authorizer: Arc<dyn Authorizer>,
    account: Option<ServiceAccount>,
}

/// The values of this library.
#[derive(Clone, Debug)]
enum Check {
    Authorizer(CheckedUser),
    Path(CheckedUser, String),
    Group(CheckedUser, String),
    Resource(CheckedUser, Resource),
    Decision(Decision),
}

impl Opaque for Check {
    fn type_of(&self) -> Type {
        Type::object(match self {
            Self::Authorizer(_) => check!("Authorizer"),
            Self::Path(..) => check!("PathCheck"),
            Self::Group(..) => check!("GroupCheck"),
            Self::Resource(..) => check!("ResourceCheck"),
            Self::Decision(_) => check!("Decision"),
        })
    }

    /// Returns `None`: the reference cannot compare these values.
    fn equals(&self, _: &dyn Opaque) -> Option<bool> {
        None
    }

    fn text(&self) -> String {
        self.type_of().to_string()
    }
}

/// Returns the value of the variable `authorizer`.
pub fn authorizer(authorizer: Arc<dyn Authorizer>) -> Value<'static> {
    Value::opaque(Check::Authorizer(CheckedUser { authorizer, account: None }))
}

/// Returns the value of the variable `authorizer.requestResource`: a check of the request's own resource.
pub fn request_resource(authorizer: Arc<dyn Authorizer>, resource: Resource) -> Value<'static> {
    Value::opaque(Check::Resource(CheckedUser { authorizer, account: None }, resource))
}

fn receiver<'v>(arguments: &'v [Value<'_>]) -> Outcome<&'v Check> {
    arguments.first().and_then(Value::as_opaque).ok_or_else(Error::no_such_overload)
}

fn path<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match (receiver(arguments)?, arguments) {
        (Check::Authorizer(_), [_, Value::String(path)]) if path.trim().is_empty() => {
            Err(Error::new("path must not be empty"))
        }
        (Check::Authorizer(user), [_, Value::String(path)]) => {
            Ok(Value::opaque(Check::Path(user.clone(), path.to_string())))
        }
        _ => unfit(),
    }
}

fn group<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match (receiver(arguments)?, arguments) {
        (Check::Authorizer(user), [_, Value::String(group)]) => {
            Ok(Value::opaque(Check::Group(user.clone(), group.to_string())))
        }
        _ => unfit(),
    }
}

fn service_account<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let (Check::Authorizer(user), [_, Value::String(namespace), Value::String(name)]) =
        (receiver(arguments)?, arguments)
    else {
        return unfit();
    };
    if !names::dns1123_subdomain(name).is_empty() {
        return Err(Error::new("Invalid service account name"));
    }
    if !names::dns1123_label(namespace).is_empty() {
        return Err(Error::new("Invalid service account namespace"));
    }
    let account = ServiceAccount { namespace: namespace.to_string(), name: name.to_string() };
    let authorizer = user.authorizer.clone();
    Ok(Value::opaque(Check::Authorizer(CheckedUser { authorizer, account: Some(account) })))
}

fn resource<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    match (receiver(arguments)?, arguments) {
        (Check::Group(..), [_, Value::String(resource)]) if resource.trim().is_empty() => {
            Err(Error::new("resource must not be empty"))
        }
        (Check::Group(user, group), [_, Value::String(resource)]) => {
            let (group, resource) = (group.clone(), resource.to_string());
            let resource = Resource { group, resource, ..Resource::default() };
            Ok(Value::opaque(Check::Resource(user.clone(), resource)))
        }
        _ => unfit(),
    }
}

fn refine<'a>(arguments: &[Value<'a>], set: impl Fn(&mut Resource, String)) -> Outcome<Value<'a>> {
    match (receiver(arguments)?, arguments) {
        (Check::Resource(user, resource), [_, Value::String(text)]) => {
            let mut resource = resource.clone();
            set(&mut resource, text.to_string());
            Ok(Value::opaque(Check::Resource(user.clone(), resource)))
        }
        _ => unfit(),
    }
}

fn ask<'a>(arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let [_, Value::String(verb)] = arguments else { return unfit() };
    let verb = verb.to_string();
    let (user, action) = match receiver(arguments)? {
        Check::Path(user, path) => (user, CheckedAction::Path { path: path.clone(), verb }),
        Check::Resource(user, resource) => {
            (user, CheckedAction::Resource { resource: Box::new(resource.clone()), verb })
        }
        _ => return unfit(),
    };
    let decision = user.authorizer.authorize(user.account.as_ref(), &action);
    Ok(Value::opaque(Check::Decision(decision)))
}

fn tell<'a>(arguments: &[Value<'a>], part: impl Fn(&Decision) -> Value<'a>) -> Outcome<Value<'a>> {
    match receiver(arguments)? {
        Check::Decision(decision) => Ok(part(decision)),
        _ => unfit(),
    }
}
