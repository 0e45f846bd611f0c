//! Server-side apply (KEP-555) to objects.

use flotilla_proto::value::Value;
use flotilla_proto::{conform, yaml};

use super::change::{Change, check_identity};
use super::ownership::{Missing, ServedVersions};
use super::precondition::MODIFIED;
use super::{FieldValidation, Incoming, Registry, Served, Target, WriteOptions, Written, convert, now, ownership};
use crate::fieldmanager;
use crate::limits;
use crate::request::Caller;
use crate::status::{ApiError, ApiResult};

impl Registry {
    /// Applies a configuration. Creates the object if it does not exist.
    pub async fn apply(
        &self,
        target: Target<'_>,
        body: &[u8],
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Written> {
        self.apply_change(target, Apply::read(target, body, options, caller)?, options, caller).await
    }

    /// Does the same as [`Registry::apply`] with a configuration that was already parsed.
    pub async fn apply_value(
        &self,
        target: Target<'_>,
        configuration: Value,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Written> {
        self.apply_change(target, Apply::new(target, configuration, options), options, caller).await
    }

    async fn apply_change(
        &self,
        target: Target<'_>,
        mut change: Apply<'_>,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Written> {
        let is_absent = || self.tables.current(target.served, target.namespace, target.name).is_none();
        let warnings_before = caller.notices.warnings.len();
        for _ in 0..limits::CHANGE_ATTEMPTS {
            let creates =
                target.subresource.is_empty() && is_absent() && self.confirm_basis(target, None, caller).await?;
            let written = match creates {
                true => self.create_applied(target, &mut change, options, caller).await,
                false => self.update(target, &mut change, options, caller).await,
            };
            match written {
                // Another client created the object meanwhile: the next attempt applies to it.
                Err(error) if creates && error.reason == "AlreadyExists" && !is_absent() => {}
                // The object was deleted while the configuration was applied: the next attempt creates it.
                Err(error) if !creates && error.code == 404 && target.subresource.is_empty() && is_absent() => {}
                written => return written,
            }
            caller.notices.warnings.truncate(warnings_before);
        }
        Err(ApiError::conflict(target.served.group(), &target.served.resource.name, target.name, MODIFIED))
    }

    /// Creates the object that a configuration states.
    async fn create_applied(
        &self,
        target: Target<'_>,
        change: &mut Apply<'_>,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Written> {
        let served = target.served;
        let mut object = match change.merge(None)? {
            Some(object) => object,
            // The configuration states nothing, and so no name either.
            None => change.configuration.clone(),
        };
        let namespace = object.str_at(&["metadata", "namespace"]);
        if namespace.is_empty() || namespace == target.namespace {
            check_identity(target, &object)?;
        }
        let uid = object.str_at(&["metadata", "uid"]);
        if !uid.is_empty() {
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(ApiError::conflict(served.group(), &served.resource.name, target.name, &why));
        }
        object.remove_at(&["metadata", "resourceVersion"]);
        self.create(target, Incoming { value: object, owned: true, ..Incoming::default() }, options, caller).await
    }
}

pub(super) struct Apply<'a> {
    target: Target<'a>,
    configuration: Value,
    options: &'a WriteOptions,
    now: String,
    /// The complaints of strict decoding about duplicate keys. The caller reports conflicts first.
    repeated: Vec<String>,
    /// The conversions by webhook that the last merge lacked.
    missing: Vec<Missing>,
}

impl<'a> Apply<'a> {
    /// Reads a configuration in YAML or JSON. The client decides about duplicate keys: they are refused later, warned
    /// about or ignored.
    ///
    /// # Errors
    /// 400 if it cannot be parsed or is no object.
    pub(super) fn read(
        target: Target<'a>,
        body: &[u8],
        options: &'a WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Self> {
        let undecodable = |why: String| ApiError::bad_request(format!("error decoding YAML: {why}"));
        let mut parsed =
            yaml::parse(body).map_err(|error| undecodable(format!("error converting YAML to JSON: {error}")))?;
        parsed.value.resolve_literals();
        if !matches!(parsed.value, Value::Object(_) | Value::Null) {
            let found = parsed.value.type_name();
            let target = "Go value of type map[string]interface {}";
            let why = format!("json: cannot unmarshal {found} into {target}");
            return Err(undecodable(format!("error unmarshaling JSON: while decoding JSON: {why}")));
        }
        let mut change = Self::new(target, parsed.value, options);
        match options.validation {
            FieldValidation::Strict => change.repeated = parsed.duplicates,
            FieldValidation::Warn => caller.notices.warnings.extend(parsed.duplicates),
            FieldValidation::Ignore => {}
        }
        Ok(change)
    }

    pub(super) fn new(target: Target<'a>, configuration: Value, options: &'a WriteOptions) -> Self {
        Self { target, configuration, options, now: now().to_string(), repeated: Vec::new(), missing: Vec::new() }
    }

    /// Returns the merged object with its `managedFields`, or the live object if the merge changes nothing. Returns
    /// `None` if the merge changes nothing and no object is live.
    fn merge(&mut self, live: Option<&Value>) -> ApiResult<Option<Value>> {
        let versions = ServedVersions::converted(self.target.served);
        let merged = self.merge_by(&versions, live);
        self.missing = versions.into_missing();
        merged
    }

    fn merge_by(&self, versions: &ServedVersions<'_>, live: Option<&Value>) -> ApiResult<Option<Value>> {
        let served = self.target.served;
        let resource = ownership::managed_resource(served, self.target.subresource, versions);
        let write = fieldmanager::Write {
            manager: &self.options.manager,
            subresource: self.target.subresource,
            now: &self.now,
        };
        let applied = fieldmanager::apply(&resource, &write, live, &self.configuration, self.options.force)?;
        if !self.repeated.is_empty() {
            let why = format!("yaml: unmarshal errors:\n  {}", self.repeated.join("\n  "));
            let message = format!("error strict decoding YAML: error converting YAML to JSON: {why}");
            return Err(ApiError::bad_request(message));
        }
        let Some(merged) = applied.object.clone() else {
            // The object stays, but its owners may change: the manager may now share fields, or own fewer.
            return Ok(live.cloned().map(|mut kept| {
                applied.finish(&mut kept);
                // A stated revision is compared with the current one even if there is nothing to change.
                let revision = ["metadata", "resourceVersion"];
                if !self.configuration.at(&revision).is_null() {
                    kept.set_at(&revision, self.configuration.at(&revision).clone());
                }
                kept
            }));
        };
        let mut object = merged.clone();
        let before = live.unwrap_or(&Value::Null);
        decode(served, &mut object, before)
            .map_err(|error| resource.unconvertible(&self.configuration, &merged, &error.to_string()))?;
        convert::default_changed(served, &mut object, before)?;
        applied.finish(&mut object);
        Ok(Some(object))
    }
}

fn decode(served: &Served, object: &mut Value, before: &Value) -> Result<(), conform::Error> {
    if let Some(custom) = &served.custom {
        // The configuration was compared with the schema. Validation rules report `null`.
        return custom.conform_metadata(object).map(drop);
    }
    object.set_at(&["kind"], &*served.kind().name);
    object.set_at(&["apiVersion"], served.api_version());
    match &served.custom {
        Some(custom) => custom.conform_metadata(object).map(drop),
        None => served.conform(object, before).map(drop),
    }
}

impl Change for Apply<'_> {
    fn apply(&mut self, current: &Value, _caller: &mut Caller) -> ApiResult<Value> {
        Ok(self.merge(Some(current))?.unwrap_or_else(|| current.clone()))
    }

    fn missing_conversions(&mut self) -> Vec<Missing> {
        std::mem::take(&mut self.missing)
    }

    fn owns_managed_fields(&self) -> bool {
        true
    }
}
