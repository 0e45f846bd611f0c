//! Reads the options of writes from the query as the reference does.

use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::unsafe_deletion;
use crate::field::{ErrorKind, Errors, Path, shown};
use crate::fieldmanager::MANAGER_BYTES_MAX;
use crate::request::query::Query;
use crate::rules::metadata;
use crate::status::{ApiError, ApiResult};

/// `apiVersion` of options.
const OPTIONS_VERSION: &str = "meta.k8s.io/v1";

/// The treatment of fields that are unknown or duplicate (API concepts, "Field validation").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldValidation {
    /// They are dropped.
    Ignore,
    /// They are dropped with a warning.
    #[default]
    Warn,
    /// The request is refused.
    Strict,
}

/// Options of create, update and patch.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// Whether the request passes every stage but stores nothing.
    pub dry_run: bool,
    /// The manager that is recorded as owner of the changed fields.
    pub manager: String,
    /// Treatment of unknown and duplicate fields.
    pub validation: FieldValidation,
    /// Whether apply takes over fields of other managers.
    pub force: bool,
    /// Whether the client named the manager.
    pub names_manager: bool,
    /// Whether the client said how to treat unknown fields.
    pub names_validation: bool,
}

impl FieldValidation {
    const fn name(self) -> &'static str {
        match self {
            Self::Ignore => "Ignore",
            Self::Warn => "Warn",
            Self::Strict => "Strict",
        }
    }
}

/// Returns the manager of a client that names none: the printable part of its user agent up to the first slash.
fn manager_of(user_agent: &str) -> String {
    let mut manager: String =
        user_agent.chars().take_while(|c| *c != '/').filter(|c| metadata::printable(*c)).collect();
    let mut end = manager.len().min(MANAGER_BYTES_MAX);
    while !manager.is_char_boundary(end) {
        end -= 1;
    }
    manager.truncate(end);
    if manager.is_empty() { "unknown".into() } else { manager }
}

impl WriteOptions {
    /// Reads and checks the options of a write; `kind` is `CreateOptions`, `UpdateOptions` or `PatchOptions`.
    pub fn read(query: &Query<'_>, kind: &str, user_agent: &str, apply: bool) -> ApiResult<Self> {
        let mut errors = Errors::default();
        let manager = query.text("fieldManager");
        if kind == "PatchOptions" {
            if apply {
                if manager.is_empty() {
                    errors.required(&Path::root("fieldManager"), "is required for apply patch");
                }
            } else if query.get("force").is_some() {
                errors.forbidden(&Path::root("force"), "may not be specified for non-apply patch");
            }
        }
        metadata::validate_field_manager(manager, &Path::root("fieldManager"), &mut errors);
        let dry_run = dry_run(&query.all("dryRun").collect::<Vec<_>>(), &mut errors);
        let validation = match query.text("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                errors.not_supported(&Path::root("fieldValidation"), other, &["", "Ignore", "Strict", "Warn"]);
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(ApiError::invalid("meta.k8s.io", kind, "", &errors.0));
        }
        let names_manager = !manager.is_empty();
        let manager = if names_manager { manager.into() } else { manager_of(user_agent) };
        let names_validation = !query.text("fieldValidation").is_empty();
        let force = query.flag("force").unwrap_or(false);
        Ok(Self { dry_run, manager, validation, force, names_manager, names_validation })
    }

    /// Returns the options as an API object, which policies and webhooks see; `kind` is `CreateOptions` or
    /// `UpdateOptions`.
    pub fn to_value(&self, kind: &str) -> Value {
        let mut options = value!({"kind": kind, "apiVersion": OPTIONS_VERSION});
        if self.dry_run {
            options.set_at(&["dryRun"], vec![Value::from("All")]);
        }
        if self.names_manager {
            options.set_at(&["fieldManager"], &*self.manager);
        }
        if self.names_validation {
            options.set_at(&["fieldValidation"], self.validation.name());
        }
        options
    }
}

/// Checks `dryRun`, whose only value is `All`. Returns whether it is set.
fn dry_run(values: &[&str], errors: &mut Errors) -> bool {
    if values.iter().any(|value| *value != "All") {
        let list: Value = values.iter().map(|&value| Value::from(value)).collect::<Vec<_>>().into();
        let detail = "supported values: \"All\"";
        errors.push(ErrorKind::NotSupported, &Path::root("dryRun"), shown(&list), detail);
    }
    !values.is_empty()
}

/// The treatment of the dependents of a deleted object (garbage collection, "Cascading deletion").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// The owner is removed from their metadata.
    Orphan,
    /// They are deleted after the owner.
    Background,
    /// They are deleted before the owner.
    Foreground,
}

/// Options of delete.
#[derive(Debug, Clone, Default)]
pub struct DeleteOptions {
    /// Whether the request passes every stage but stores nothing.
    pub dry_run: bool,
    /// The grace period in seconds.
    pub grace_seconds: Option<i64>,
    /// Treatment of dependents. `None` for the kind's default.
    pub propagation: Option<Propagation>,
    /// The UID that the object must have.
    pub uid: Option<String>,
    /// The revision that the object must have.
    pub resource_version: Option<String>,
    /// Set if the request removes an object even if it cannot be decoded. Holds the errors about other options that
    /// this one excludes. As by default in the reference, it has no effect on objects that can be decoded.
    pub despite_read_errors: Option<Errors>,
    /// Whether the object is deleted as one of a collection.
    pub is_of_collection: bool,
    /// Whether policies and webhooks have already decided about the operation of which this deletion is a part.
    pub is_decided: bool,
}

impl DeleteOptions {
    /// Reads options from a `DeleteOptions` body, or from the query where there is none.
    pub fn read(query: &Query<'_>, body: Option<&Value>) -> ApiResult<Self> {
        let mut errors = Errors::default();
        let from_query;
        let source = match body {
            Some(body) => body,
            None => {
                from_query = query_options(query)?;
                &from_query
            }
        };
        let dry: Vec<&str> = source.list_at(&["dryRun"]).iter().map(|value| value.as_str().unwrap_or("")).collect();
        let policy = source.at(&["propagationPolicy"]).as_str();
        let orphan = source.at(&["orphanDependents"]).as_bool();
        let path = Path::root("propagationPolicy");
        let mut options = Self {
            grace_seconds: source.int_at(&["gracePeriodSeconds"]),
            uid: source.at(&["preconditions", "uid"]).as_str().map(Into::into),
            resource_version: source.at(&["preconditions", "resourceVersion"]).as_str().map(Into::into),
            despite_read_errors: unsafe_deletion::read(source),
            ..Self::default()
        };
        if let (Some(policy), Some(_)) = (policy, orphan) {
            errors.invalid_str(&path, policy, "orphanDependents and deletionPropagation cannot be both set");
        }
        options.propagation = match policy {
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some(other) => {
                errors.not_supported(&path, other, &["Foreground", "Background", "Orphan", "nil"]);
                None
            }
            None => orphan.map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background }),
        };
        options.dry_run = dry_run(&dry, &mut errors);
        if errors.is_empty() {
            Ok(options)
        } else {
            Err(ApiError::invalid("meta.k8s.io", "DeleteOptions", "", &errors.0))
        }
    }
}

impl DeleteOptions {
    /// Returns the options as an API object, which policies and webhooks see.
    pub fn to_value(&self) -> Value {
        let mut options = value!({"kind": "DeleteOptions", "apiVersion": OPTIONS_VERSION});
        if let Some(seconds) = self.grace_seconds {
            options.set_at(&["gracePeriodSeconds"], seconds);
        }
        if let Some(uid) = &self.uid {
            options.set_at(&["preconditions", "uid"], &**uid);
        }
        if let Some(revision) = &self.resource_version {
            options.set_at(&["preconditions", "resourceVersion"], &**revision);
        }
        if let Some(propagation) = self.propagation {
            options.set_at(&["propagationPolicy"], propagation.name());
        }
        if self.dry_run {
            options.set_at(&["dryRun"], vec![Value::from("All")]);
        }
        if self.despite_read_errors.is_some() {
            options.set_at(&[unsafe_deletion::OPTION], true);
        }
        options
    }
}

impl Propagation {
    const fn name(self) -> &'static str {
        match self {
            Self::Orphan => "Orphan",
            Self::Background => "Background",
            Self::Foreground => "Foreground",
        }
    }
}

/// Returns the query's parameters in the form of a body.
fn query_options(query: &Query<'_>) -> ApiResult<Value> {
    let mut options = Value::object();
    let dry: Vec<Value> = query.all("dryRun").map(Value::from).collect();
    if !dry.is_empty() {
        options.set_at(&["dryRun"], dry);
    }
    if let Some(seconds) = query.int("gracePeriodSeconds")? {
        options.set_at(&["gracePeriodSeconds"], seconds);
    }
    if let Some(orphan) = query.flag("orphanDependents") {
        options.set_at(&["orphanDependents"], orphan);
    }
    if let Some(despite) = query.flag(unsafe_deletion::OPTION) {
        options.set_at(&[unsafe_deletion::OPTION], despite);
    }
    if let Some(policy) = query.get("propagationPolicy") {
        options.set_at(&["propagationPolicy"], policy);
    }
    for precondition in ["uid", "resourceVersion"] {
        let stated = query.text(precondition);
        if !stated.is_empty() {
            options.set_at(&["preconditions", precondition], stated);
        }
    }
    Ok(options)
}
