//! A write as plugins within the server see it.

use flotilla_cluster::Scope;
use flotilla_proto::value::Value;
use parking_lot::Mutex;

use super::{Admission, Operation};
use crate::metrics::admission::Phase;
use crate::request::Caller;
use crate::status::{ApiError, ApiResult};
use crate::tables::Target;

/// A write as plugins within the server see it. It borrows everything, in the stored version. Steps get the object
/// separately, because plugins change it. Policies and webhooks get [`DynamicAttributes`](super::DynamicAttributes).
#[derive(Debug)]
pub struct BuiltInAttributes<'a> {
    /// Gives access to objects, to the authorizer and to the configuration.
    pub admission: &'a Admission,
    /// The object that the request names.
    pub target: Target<'a>,
    /// The operation: create, update, delete or connect.
    pub operation: Operation,
    /// The stored object, in its stored version. `None` for a create.
    pub old: Option<&'a Value>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// The user who makes the request.
    pub caller: &'a Caller,
    results: Mutex<Results>,
}

/// The results of plugins besides their decision.
#[derive(Debug, Default)]
pub struct Results {
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Audit annotations: keys and values.
    pub annotations: Vec<(String, String)>,
    /// UIDs of the quotas that were charged.
    pub charged: Vec<String>,
}

impl<'a> BuiltInAttributes<'a> {
    /// Describes a create. [`BuiltInAttributes::changes`] and [`BuiltInAttributes::with_dry_run`] make other writes of
    /// it.
    pub fn create(admission: &'a Admission, target: Target<'a>, caller: &'a Caller) -> Self {
        let (operation, results) = (Operation::Create, Mutex::default());
        Self { admission, target, operation, old: None, dry_run: false, caller, results }
    }

    /// Describes the same write with another operation.
    pub fn of(self, operation: Operation) -> Self {
        Self { operation, ..self }
    }

    /// Describes a write of a stored object.
    pub fn changes(self, operation: Operation, old: &'a Value) -> Self {
        Self { operation, old: Some(old), ..self }
    }

    /// Describes the same write, as a dry run if `dry_run` is true.
    pub fn with_dry_run(self, dry_run: bool) -> Self {
        Self { dry_run, ..self }
    }

    /// Adds a warning for the client. It is sent unless the write is refused.
    pub fn warn(&self, text: String) {
        self.results.lock().warnings.push(text);
    }

    /// Adds an audit annotation, if the request is recorded. It stays if the write is refused.
    pub fn annotate(&self, key: &str, value: impl FnOnce() -> String) {
        if self.caller.record.is_some() {
            self.results.lock().annotations.push((key.to_owned(), value()));
        }
    }

    /// Notes the UID of a quota that was charged. Nothing is charged in a dry run.
    pub fn note_charged(&self, quota: String) {
        if !self.dry_run {
            self.results.lock().charged.push(quota);
        }
    }

    /// Runs a plugin's step and measures it under the plugin's name.
    pub fn measured(&self, plugin: &'static str, phase: Phase, run: impl FnOnce() -> ApiResult<()>) -> ApiResult<()> {
        self.admission.tables.metrics.by_plugin(plugin, self.operation, phase, run)
    }

    /// Returns the results of plugins besides their decision.
    pub fn into_results(self) -> Results {
        self.results.into_inner()
    }

    /// Returns the limit ranges of the namespace.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn limit_ranges(&self) -> ApiResult<Vec<Value>> {
        self.admission.tables.look_up_all("", "limitranges", Scope::namespace(self.target.namespace))
    }

    /// Returns 403 in the wording of an admission plugin. An object whose name is not generated yet is called by its
    /// `generateName`.
    pub fn refuse(&self, object: &Value, why: &str) -> ApiError {
        let names =
            [self.target.name, object.str_at(&["metadata", "name"]), object.str_at(&["metadata", "generateName"])];
        let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown");
        ApiError::forbidden(self.target.served.group(), &self.target.served.resource.name, name, why)
    }
}
