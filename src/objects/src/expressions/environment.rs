//! The names that expressions may use: the variables in scope, and the types whose fields are declared.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use flotilla_cel::environment::{Environment, Provider};
use flotilla_cel::error::{Error, Outcome};
use flotilla_cel::library::json_patch;
use flotilla_cel::types::Type;
use flotilla_cel::value::{Map, Value};
use parking_lot::RwLock;

/// The minor version of Kubernetes whose functions new expressions may call. It is the previous release, so that
/// servers of that release can evaluate them.
pub const NEW: u16 = 35;
/// The minor version for stored expressions: they may call all functions.
pub const STORED: u16 = u16::MAX;

/// The type of apply configurations.
pub const OBJECT: &str = "Object";
/// The type of JSON patch operations.
pub const JSON_PATCH: &str = "JSONPatch";
/// The type of `variables`.
pub const VARIABLES: &str = "kubernetes.variables";

/// The optional names that an expression may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionalNames {
    /// `params`.
    pub params: bool,
    /// `authorizer`.
    pub authorizer: bool,
    /// The types `Object` and `JSONPatch`, with which expressions describe changes.
    pub patches: bool,
}

/// A variable of the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// The object after the write.
    Object,
    /// The object before the write.
    OldObject,
    /// The namespace of the object.
    NamespaceObject,
    /// The attributes of the request.
    Request,
    /// The variables of the policy.
    Variables,
    /// The parameters.
    Params,
    /// The authorizer.
    Authorizer,
    /// The authorizer, bound to the resource of the request.
    RequestResource,
}

impl Name {
    const fn text(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::OldObject => "oldObject",
            Self::NamespaceObject => "namespaceObject",
            Self::Request => "request",
            Self::Variables => "variables",
            Self::Params => "params",
            Self::Authorizer => "authorizer",
            Self::RequestResource => "authorizer.requestResource",
        }
    }

    fn of(self, declared: &Declared) -> Type {
        match self {
            Self::Object | Self::OldObject => declared.object.clone().unwrap_or(Type::Dyn),
            Self::Params => declared.params.clone().unwrap_or(Type::Dyn),
            Self::NamespaceObject => Type::object("kubernetes.Namespace"),
            Self::Request => Type::object("kubernetes.AdmissionRequest"),
            Self::Variables => Type::object(VARIABLES),
            Self::Authorizer => Type::object("kubernetes.authorization.Authorizer"),
            Self::RequestResource => Type::object("kubernetes.authorization.ResourceCheck"),
        }
    }
}

/// The variables of a policy with their types. Clones share them: each expression sees the variables before it without
/// a copy.
#[derive(Debug, Clone, Default)]
pub struct VariableTypes(Arc<RwLock<HashMap<Box<str>, Type>>>);

impl VariableTypes {
    /// Declares a variable.
    pub fn declare(&self, name: &str, of: Type) {
        self.0.write().insert(name.into(), of);
    }

    fn get(&self, name: &str) -> Option<Type> {
        self.0.read().get(name).cloned()
    }
}

/// Declarations beyond those that all expressions have.
#[derive(Debug, Clone, Default)]
pub struct Declared {
    /// The type of objects. `None` if it is unknown.
    pub object: Option<Type>,
    /// The type of parameters. `None` if it is unknown.
    pub params: Option<Type>,
    /// The sources of the fields of these types.
    pub schemas: Vec<Arc<dyn Provider>>,
    /// The variables of a policy. `None` if expressions cannot use variables.
    pub variables: Option<VariableTypes>,
    /// Whether `authorizer.requestResource` is missing, because no request is evaluated.
    pub is_without_request: bool,
}

/// Returns the environment of an expression, and the variable of each slot.
pub(super) fn environment(minor: u16, sees: OptionalNames, declared: &Declared) -> (Environment, Vec<Name>) {
    let mut names = vec![Name::Object, Name::OldObject, Name::NamespaceObject, Name::Request];
    if declared.variables.is_some() {
        names.push(Name::Variables);
    }
    if sees.params {
        names.push(Name::Params);
    }
    if sees.authorizer {
        names.push(Name::Authorizer);
        if !declared.is_without_request {
            names.push(Name::RequestResource);
        }
    }
    let base = if sees.patches { with_patches(minor) } else { Environment::kubernetes(minor) };
    let objects = ObjectTypes { declared: declared.clone(), patches: sees.patches };
    let environment = base.with_provider(Arc::new(objects));
    let environment = names.iter().fold(environment, |made, name| made.with_variable(name.text(), name.of(declared)));
    (environment, names)
}

/// Returns the environment of expressions that describe changes. It is created once per version.
fn with_patches(minor: u16) -> Environment {
    static MADE: [OnceLock<Environment>; 2] = [OnceLock::new(), OnceLock::new()];
    let made = &MADE[usize::from(minor == STORED)];
    made.get_or_init(|| Environment::kubernetes(minor).with_library(&json_patch::LIBRARY)).clone()
}

/// Provides the types of objects whose fields are declared.
#[derive(Debug)]
struct ObjectTypes {
    declared: Declared,
    patches: bool,
}

impl ObjectTypes {
    fn is_patch(&self, object: &str) -> bool {
        self.patches && (object == JSON_PATCH || is_object(object))
    }
}

fn is_object(name: &str) -> bool {
    name.strip_prefix(OBJECT).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl Provider for ObjectTypes {
    fn has_object(&self, name: &str) -> bool {
        FIELDS.iter().any(|(object, _)| *object == name)
            || (name == VARIABLES && self.declared.variables.is_some())
            || self.is_patch(name)
            || self.declared.schemas.iter().any(|schema| schema.has_object(name))
    }

    fn field(&self, object: &str, field: &str) -> Option<Type> {
        if object == VARIABLES {
            return self.declared.variables.as_ref()?.get(field);
        }
        if self.is_patch(object) {
            return match (object, field) {
                (JSON_PATCH, "op" | "path" | "from") => Some(Type::String),
                (JSON_PATCH, "value") => Some(Type::Dyn),
                (JSON_PATCH, _) => None,
                _ => Some(Type::Dyn),
            };
        }
        if let Some((_, fields)) = FIELDS.iter().find(|(name, _)| *name == object) {
            return fields.iter().find(|(name, _)| *name == field).map(|(_, of)| of.to_type());
        }
        self.declared.schemas.iter().find_map(|schema| schema.field(object, field))
    }

    fn make<'a>(&self, object: &str, fields: Value<'a>) -> Outcome<Value<'a>> {
        match fields {
            Value::Map(Map::Made(entries)) => {
                Ok(Value::Map(Map::Made(Arc::new(Arc::unwrap_or_clone(entries).of_object(object)))))
            }
            _ => Err(Error::no_such_overload()),
        }
    }
}

/// The type of a declared field.
enum Of {
    Text,
    Truth,
    Number,
    Time,
    Any,
    Texts,
    TextByText,
    TextsByText,
    Object(&'static str),
    Objects(&'static str),
}

impl Of {
    fn to_type(&self) -> Type {
        let texts = || Type::list(Type::String);
        match self {
            Self::Text => Type::String,
            Self::Truth => Type::Bool,
            Self::Number => Type::Int,
            Self::Time => Type::Timestamp,
            Self::Any => Type::Dyn,
            Self::Texts => texts(),
            Self::TextByText => Type::map(Type::String, Type::String),
            Self::TextsByText => Type::map(Type::String, texts()),
            Self::Object(name) => Type::object(name),
            Self::Objects(name) => Type::list(Type::object(name)),
        }
    }
}

/// The fields of a type.
type Fields = &'static [(&'static str, Of)];

/// The types of `request` and `namespaceObject`.
const FIELDS: [(&str, Fields); 9] = [
    ("kubernetes.GroupVersionKind", &[("group", Of::Text), ("version", Of::Text), ("kind", Of::Text)]),
    ("kubernetes.GroupVersionResource", &[("group", Of::Text), ("version", Of::Text), ("resource", Of::Text)]),
    (
        "kubernetes.UserInfo",
        &[("username", Of::Text), ("uid", Of::Text), ("groups", Of::Texts), ("extra", Of::TextsByText)],
    ),
    (
        "kubernetes.AdmissionRequest",
        &[
            ("kind", Of::Object("kubernetes.GroupVersionKind")),
            ("resource", Of::Object("kubernetes.GroupVersionResource")),
            ("subResource", Of::Text),
            ("requestKind", Of::Object("kubernetes.GroupVersionKind")),
            ("requestResource", Of::Object("kubernetes.GroupVersionResource")),
            ("requestSubResource", Of::Text),
            ("name", Of::Text),
            ("namespace", Of::Text),
            ("operation", Of::Text),
            ("userInfo", Of::Object("kubernetes.UserInfo")),
            ("dryRun", Of::Truth),
            ("options", Of::Any),
        ],
    ),
    ("kubernetes.NamespaceSpec", &[("finalizers", Of::Texts)]),
    (
        "kubernetes.NamespaceCondition",
        &[
            ("status", Of::Text),
            ("type", Of::Text),
            ("lastTransitionTime", Of::Time),
            ("message", Of::Text),
            ("reason", Of::Text),
        ],
    ),
    (
        "kubernetes.NamespaceStatus",
        &[("conditions", Of::Objects("kubernetes.NamespaceCondition")), ("phase", Of::Text)],
    ),
    (
        "kubernetes.NamespaceMetadata",
        &[
            ("name", Of::Text),
            ("generateName", Of::Text),
            ("namespace", Of::Text),
            ("labels", Of::TextByText),
            ("annotations", Of::TextByText),
            ("UID", Of::Text),
            ("creationTimestamp", Of::Time),
            ("deletionGracePeriodSeconds", Of::Number),
            ("deletionTimestamp", Of::Time),
            ("generation", Of::Number),
            ("resourceVersion", Of::Text),
            ("finalizers", Of::Texts),
        ],
    ),
    (
        "kubernetes.Namespace",
        &[
            ("metadata", Of::Object("kubernetes.NamespaceMetadata")),
            ("spec", Of::Object("kubernetes.NamespaceSpec")),
            ("status", Of::Object("kubernetes.NamespaceStatus")),
        ],
    ),
];
