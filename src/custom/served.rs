//! One version of a custom resource, as requests use it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use flotilla_cluster::Object;
use flotilla_objects::api_version;
use flotilla_proto::conform;
use flotilla_proto::json;
use flotilla_proto::schema::{Kind, Ref, Type};
use flotilla_proto::structural::{Overgrown, Structural, default, drop_nulls, prune};
use flotilla_proto::value::Value;

use super::definition::{Definition, Version};
use super::replicas;
use crate::field::{Errors, Path, quote};
use crate::schemas::coerce::{coerce, metadata_type};
use crate::schemas::{ratchet, validate};
use crate::status::{ApiError, ApiResult};
use crate::webhooks::conversion::cache;

/// The schema of an unknown version: it allows no fields at all.
static NOTHING: LazyLock<Structural> = LazyLock::new(Structural::default);

/// A version of a custom resource.
#[derive(Debug, Clone)]
pub struct Custom {
    definition: Arc<Definition>,
    version: usize,
}

impl Custom {
    /// Returns the served versions of a definition.
    pub fn of(definition: &Arc<Definition>) -> impl Iterator<Item = Self> {
        let served = |version: &usize| definition.versions[*version].served;
        let versions = (0..definition.versions.len()).filter(served);
        versions.map(|version| Self { definition: definition.clone(), version })
    }

    /// Returns the version in which objects are stored, served or not.
    pub fn stored(definition: &Arc<Definition>) -> Self {
        Self { definition: definition.clone(), version: definition.storage }
    }

    /// Returns the definition.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Returns this version of the definition.
    pub fn version(&self) -> &Version {
        &self.definition.versions[self.version]
    }

    /// Returns the kind in the stored version.
    pub fn stored_kind(&self) -> &Ref<Kind> {
        &self.definition.stored().kind
    }

    /// Returns whether documents that name each resource once describe it in this version. They describe the stored
    /// version, or the first served version if the stored one is not served.
    pub fn is_first(&self) -> bool {
        let (versions, storage) = (&self.definition.versions, self.definition.storage);
        match versions[storage].served {
            true => self.version == storage,
            false => versions.iter().position(|version| version.served) == Some(self.version),
        }
    }

    /// Conforms an object that a client sent: decodes its metadata, and drops the fields that the schema does not have.
    /// The object's own `apiVersion` selects the schema. Returns the paths of dropped fields. Values of wrong types
    /// stay; [`Custom::validate`] reports them. An object of another kind stays as it is; [`Custom::check_type`]
    /// refuses it.
    ///
    /// # Errors
    /// The metadata of the object, or of an object embedded in it, cannot be decoded.
    pub fn conform(&self, object: &mut Value) -> Result<Vec<String>, conform::Error> {
        let mut unknown = self.conform_metadata(object)?;
        object.resolve_literals();
        let Some(schema) = self.stated_schema(object) else { return Ok(unknown) };
        unknown.extend(prune(schema, object, true));
        drop_nulls(schema, object);
        unknown.extend(coerce(schema, object).map_err(|error| conform::Error::Embedded(error.to_string()))?);
        Ok(unknown)
    }

    /// Conforms only the metadata of an object. Returns the paths of dropped fields.
    ///
    /// # Errors
    /// The metadata cannot be decoded.
    pub fn conform_metadata(&self, object: &mut Value) -> Result<Vec<String>, conform::Error> {
        match (metadata_type(), object.get_mut("metadata")) {
            (Some(of), Some(metadata)) if !metadata.is_null() => {
                let dropped = conform::conform(of, metadata)?;
                Ok(dropped.into_iter().map(|path| format!("metadata.{path}")).collect())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Returns the schema of the version that an object states. Returns `None` if the object states another kind.
    fn stated_schema(&self, object: &Value) -> Option<&Structural> {
        let (group, version) = object.str_at(&["apiVersion"]).split_once('/')?;
        let is_own = group == self.definition.group && object.str_at(&["kind"]) == self.definition.kind;
        is_own.then(|| self.definition.version(version).map_or(&*NOTHING, |version| &version.schema))
    }

    /// Checks that an object states this kind in this version.
    ///
    /// # Errors
    /// 422 if it states another kind or version. The error names the kind that the object states.
    pub fn check_type(&self, object: &Value) -> ApiResult<()> {
        let mut errors = Errors::default();
        let own = [("kind", self.definition.kind.to_string()), ("apiVersion", self.version().api_version())];
        for (field, own) in own {
            let stated = object.str_at(&[field]);
            if stated != own {
                errors.invalid_str(&Path::root(field), stated, format!("must be {own}"));
            }
        }
        if errors.is_empty() {
            return Ok(());
        }
        let group = api_version::group(object.str_at(&["apiVersion"]));
        let name = object.str_at(&["metadata", "name"]);
        Err(ApiError::invalid(group, object.str_at(&["kind"]), name, &errors.0))
    }

    /// Writes the defaults of the schema into an object.
    ///
    /// # Errors
    /// 413 if the object with its defaults would exceed the size limit.
    pub fn default(&self, object: &mut Value) -> ApiResult<()> {
        default(&self.version().schema, object).map_err(overgrown)
    }

    /// Converts a stored object to this version. It may have been stored in another version, or under an earlier state
    /// of the definition.
    ///
    /// # Errors
    /// 500 if the definition no longer has the version in which the object was stored. 413 if its present defaults make
    /// the object exceed the size limit. 503 if the conversion by webhook was not fetched before.
    pub fn show(&self, object: Value) -> ApiResult<Value> {
        let mut shown = self.translated(self.read(object)?, self.version())?;
        shown.sort_members();
        Ok(shown)
    }

    /// Reads a stored object in the version in which it was stored, by the present schema of that version: keeps
    /// only its fields, sets its defaults, and drops nulls that it does not allow.
    ///
    /// # Errors
    /// 500 and 413, as for [`Custom::show`].
    pub fn read(&self, mut object: Value) -> ApiResult<Value> {
        let stated = object.str_at(&["apiVersion"]);
        let stored = self.definition.of_api_version(stated).ok_or_else(|| {
            ApiError::unknown(format!("request to convert CR from an invalid group/version: {stated}"))
        })?;
        prune(&stored.schema, &mut object, true);
        default(&stored.schema, &mut object).map_err(overgrown)?;
        drop_nulls(&stored.schema, &mut object);
        Ok(object)
    }

    /// Returns the definition if a webhook converts its objects. Returns `None` if the server converts them.
    pub fn converted_by_webhook(&self) -> Option<&Arc<Definition>> {
        Some(&self.definition).filter(|definition| definition.conversion.is_some())
    }

    /// Converts an object to another version. If a webhook converts, the result must already have been fetched.
    fn translated(&self, mut object: Value, to: &Version) -> ApiResult<Value> {
        let api_version = to.api_version();
        if self.definition.conversion.is_some() && object.str_at(&["apiVersion"]) != api_version {
            let found = cache::find(self.definition.serial, &api_version, &object);
            let found = found.ok_or_else(|| ApiError::unavailable("the object was not converted in time", 1))?;
            return Ok(Value::clone(&found));
        }
        translate(&mut object, to);
        Ok(object)
    }

    /// Returns whether this version shows an object exactly as it is stored. The object is compared once for each
    /// definition, and a note on the object keeps the result.
    pub fn shows_as_stored(&self, object: &Object) -> bool {
        if self.version != self.definition.storage {
            return false;
        }
        let serial = self.definition.serial;
        if object.derived_number() == Some(serial) {
            return true;
        }
        let is_same = json::parse(object.bytes())
            .is_ok_and(|stored| self.show(stored.clone()).is_ok_and(|shown| shown == stored));
        if is_same {
            object.keep_derived_number(serial.get());
        }
        is_same
    }

    /// Converts an object of this version to the stored version. Drops fields that the stored version does not have,
    /// and nulls that it does not allow.
    ///
    /// # Errors
    /// 503 if the conversion by webhook was not fetched before.
    pub fn store(&self, object: Value) -> ApiResult<Value> {
        let mut stored = self.translated(object, self.definition.stored())?;
        stored.sort_members();
        Ok(stored)
    }

    /// Converts an object to another version, served or not. If a webhook converts, the result must already have been
    /// fetched.
    ///
    /// # Errors
    /// 500 if the definition has no such version, 503 if the conversion by webhook was not fetched before.
    pub fn convert(&self, object: Value, api_version: &str) -> ApiResult<Value> {
        let to = self.target(&object, api_version)?;
        self.translated(object, to)
    }

    /// Does the same as [`Custom::convert`], and returns the type of the other version as well. Returns `None` if a
    /// webhook converts and its result was not fetched.
    ///
    /// # Errors
    /// 500 if the definition has no such version.
    pub fn known_conversion(&self, object: &Value, api_version: &str) -> ApiResult<Option<(Ref<Type>, Value)>> {
        let to = self.target(object, api_version)?;
        Ok(self.translated(object.clone(), to).ok().map(|converted| (to.kind.of.clone(), converted)))
    }

    /// Interprets an object as one of another version, served or not, as the conversion strategy `None` does. Returns
    /// the object and its type there.
    ///
    /// # Errors
    /// 500 if the definition has no such version.
    pub fn interpret(&self, object: &Value, api_version: &str) -> ApiResult<(Ref<Type>, Value)> {
        let to = self.target(object, api_version)?;
        let mut interpreted = object.clone();
        translate(&mut interpreted, to);
        Ok((to.kind.of.clone(), interpreted))
    }

    /// Returns the version to which an object is converted.
    fn target(&self, object: &Value, api_version: &str) -> ApiResult<&Version> {
        self.definition.of_api_version(api_version).ok_or_else(|| {
            let group = api_version::group(api_version);
            ApiError::unknown(if group == self.definition.group {
                format!("request to convert CR to an invalid group/version: {api_version}")
            } else {
                let own = format!("{}, Kind={}", object.str_at(&["apiVersion"]), self.definition.kind);
                format!("{own} is unstructured and is not suitable for converting to {}", quote(api_version))
            })
        })
    }

    /// Validates a new object. `errors` has the errors of other checks.
    pub fn validate(&self, object: &Value, errors: &mut Errors, warnings: &mut Vec<String>) {
        validate::validate(&self.version().schema, object, errors);
        self.validate_scale(object, false, errors);
        self.version().judge(object, None, errors, warnings);
    }

    /// Validates a changed object. `errors` has the errors of other checks.
    pub fn validate_update(
        &self,
        subresource: &str,
        object: &Value,
        old: &Value,
        errors: &mut Errors,
        warnings: &mut Vec<String>,
    ) {
        let is_status = subresource == "status";
        if is_status {
            ratchet::validate_status_update(&self.version().schema, object, old, errors);
        } else {
            ratchet::validate_update(&self.version().schema, object, old, errors);
        }
        self.validate_scale(object, is_status, errors);
        self.version().judge(object, Some(old), errors, warnings);
    }

    /// Checks the values that a Scale shows, if the version has the subresource `scale`.
    fn validate_scale(&self, object: &Value, is_status: bool, errors: &mut Errors) {
        if let Some(paths) = &self.version().scale {
            replicas::validate(paths, object, is_status, errors);
        }
    }

    /// Returns the names of the fields that `fieldSelector` accepts, besides name and namespace.
    pub fn selectors(&self) -> impl Iterator<Item = String> {
        self.version().selectable.iter().map(|path| path.join("."))
    }

    /// Returns the value of a field of an object in this version, as selectors compare it. It is empty if
    /// `fieldSelector` does not accept the field.
    pub fn selected_field(&self, object: &Value, name: &str) -> String {
        let path = self.version().selectable.iter().find(|path| path.join(".") == name);
        path.map_or_else(String::new, |path| {
            let names: Vec<&str> = path.iter().map(String::as_str).collect();
            text(object.at(&names))
        })
    }

    /// Returns the names of the fields that `fieldSelector` accepts in any version, besides name and namespace.
    pub fn selectable(&self) -> BTreeSet<String> {
        self.selectable_paths().map(|path| path.join(".")).collect()
    }

    fn selectable_paths(&self) -> impl Iterator<Item = &Vec<String>> {
        self.definition.versions.iter().flat_map(|version| &version.selectable)
    }

    /// Returns the fields of an object that selectors of any version may use, as names and values. Empty ones are left
    /// out.
    pub fn selected(&self, object: &Value) -> Vec<(String, String)> {
        let mut selected: Vec<(String, String)> = Vec::new();
        for path in self.selectable_paths() {
            let name = path.join(".");
            let names: Vec<&str> = path.iter().map(String::as_str).collect();
            let value = text(object.at(&names));
            if !value.is_empty() && !selected.iter().any(|(known, _)| *known == name) {
                selected.push((name, value));
            }
        }
        selected
    }
}

fn overgrown(why: Overgrown) -> ApiError {
    ApiError::new(413, "RequestEntityTooLarge", format!("Request entity too large: {why}"))
}

/// Converts an object to another version by changing `apiVersion` and dropping fields that the version does not have,
/// and nulls that it does not allow.
fn translate(object: &mut Value, to: &Version) {
    let api_version = to.api_version();
    if object.str_at(&["apiVersion"]) != api_version {
        object.set_at(&["apiVersion"], api_version);
        prune(&to.schema, object, true);
        drop_nulls(&to.schema, object);
    }
}

/// Formats a scalar as selectors compare it.
fn text(value: &Value) -> String {
    let mut out = String::new();
    let _ = match value {
        Value::Str(text) => write!(out, "{text}"),
        Value::Int(number) => write!(out, "{number}"),
        Value::Bool(flag) => write!(out, "{flag}"),
        _ => Ok(()),
    };
    out
}

#[cfg(test)]
#[path = "served_tests.rs"]
mod tests;
