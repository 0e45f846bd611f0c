//! One served version of a custom resource, as requests use it.

use std::fmt::Write as _;
use std::sync::Arc;

use flotilla_cluster::Object;
use flotilla_proto::catalogue;
use flotilla_proto::conform;
use flotilla_proto::json;
use flotilla_proto::schema::{Kind, Ref, Shape, Type};
use flotilla_proto::structural::{default, drop_nulls, prune};
use flotilla_proto::value::Value;

use super::coerce::coerce;
use super::definition::{Definition, Version};
use super::{ratchet, validate};
use crate::field::{Errors, Path};

/// A version of a custom resource.
#[derive(Debug, Clone)]
pub struct Custom {
    definition: Arc<Definition>,
    version: usize,
}

impl Custom {
    /// The versions of a definition that are served.
    pub fn of(definition: &Arc<Definition>) -> impl Iterator<Item = Self> {
        let served = |version: &usize| definition.versions[*version].served;
        let versions = (0..definition.versions.len()).filter(served);
        versions.map(|version| Self { definition: definition.clone(), version })
    }

    /// The definition.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// What the definition says of this version.
    pub fn version(&self) -> &Version {
        &self.definition.versions[self.version]
    }

    /// The kind in the version that objects are stored in.
    pub fn stored_kind(&self) -> &Ref<Kind> {
        &self.definition.stored().kind
    }

    /// Whether this one of the served versions stands for the resource where each resource is told of once: the one
    /// that objects are stored in, or else the first.
    pub fn is_first(&self) -> bool {
        let (versions, storage) = (&self.definition.versions, self.definition.storage);
        match versions[storage].served {
            true => self.version == storage,
            false => versions.iter().position(|version| version.served) == Some(self.version),
        }
    }

    /// Conforms an object that a client sent: its metadata is that of every kind, and the rest what the schema knows.
    /// Returns the paths of fields that were dropped. Values of wrong types stay, for [`Custom::validate`] to tell.
    ///
    /// # Errors
    /// The metadata cannot be read, or that of an object within.
    pub fn conform(&self, object: &mut Value) -> Result<Vec<String>, conform::Error> {
        let schema = &self.version().schema;
        let mut unknown = self.conform_applied(object)?;
        unknown.extend(prune(schema, object, true));
        drop_nulls(schema, object);
        unknown.extend(coerce(schema, object).map_err(|error| conform::Error::Embedded(error.to_string()))?);
        Ok(unknown)
    }

    /// Conforms what an apply makes of an object that conforms: nothing but the metadata has to be looked at. Returns
    /// the paths of its fields that were dropped.
    ///
    /// # Errors
    /// The metadata cannot be read.
    pub fn conform_applied(&self, object: &mut Value) -> Result<Vec<String>, conform::Error> {
        Ok(match (metadata_type(), object.get_mut("metadata")) {
            (Some(of), Some(metadata)) if !metadata.is_null() => {
                let dropped = conform::conform(of, metadata)?;
                dropped.into_iter().map(|path| format!("metadata.{path}")).collect()
            }
            _ => Vec::new(),
        })
    }

    /// Writes the defaults of the schema into an object.
    pub fn default(&self, object: &mut Value) {
        default(&self.version().schema, object);
    }

    /// A stored object as this version shows it. It may have been stored in another version, or when the definition
    /// said something else.
    pub fn show(&self, mut object: Value) -> Value {
        self.settle(&mut object);
        object.sort_members();
        object
    }

    /// Whether the stored bytes of an object are what this version shows. Found out once for each definition, and
    /// noted on the object.
    pub fn shows_as_stored(&self, object: &Object) -> bool {
        if self.version != self.definition.storage {
            return false;
        }
        let serial = self.definition.serial;
        if object.note() == Some(serial) {
            return true;
        }
        let is_same = json::parse(object.bytes()).is_ok_and(|stored| self.show(stored.clone()) == stored);
        if is_same {
            object.take_note(serial.get());
        }
        is_same
    }

    /// An object of this version, as it is stored.
    pub fn store(&self, mut object: Value) -> Value {
        object.set_at(&["apiVersion"], self.definition.stored().api_version());
        object
    }

    fn settle(&self, object: &mut Value) {
        object.set_at(&["apiVersion"], self.version().api_version());
        prune(&self.version().schema, object, true);
        default(&self.version().schema, object);
    }

    /// An object of this version in another one, with the type of its kind there; `None` when that is not served.
    pub fn convert(&self, object: &Value, api_version: &str) -> Option<(Ref<Type>, Value)> {
        let (group, version) = api_version.split_once('/')?;
        let to = self.definition.versions.iter().position(|to| to.served && to.name == version)?;
        if group != self.definition.group {
            return None;
        }
        let to = Self { definition: self.definition.clone(), version: to };
        let of = to.version().kind.of.clone();
        if object.str_at(&["apiVersion"]) == api_version {
            return Some((of, object.clone()));
        }
        let mut converted = object.clone();
        to.settle(&mut converted);
        Some((of, converted))
    }

    /// Tells what of a new object the schema does not allow.
    pub fn validate(&self, object: &Value, errors: &mut Errors) {
        validate::validate(&self.version().schema, object, errors);
        self.validate_replicas(object, errors);
    }

    /// Tells what of a changed object the schema does not allow.
    pub fn validate_update(&self, subresource: &str, object: &Value, old: &Value, errors: &mut Errors) {
        if subresource == "status" {
            return ratchet::validate_status_update(&self.version().schema, object, old, errors);
        }
        ratchet::validate_update(&self.version().schema, object, old, errors);
        self.validate_replicas(object, errors);
    }

    /// What a Scale asks for must fit into one.
    fn validate_replicas(&self, object: &Value, errors: &mut Errors) {
        let Some(scale) = &self.version().scale else { return };
        let names: Vec<&str> = scale.replicas.iter().map(String::as_str).collect();
        let name = format!(".{}", names.join("."));
        let (path, value) = (Path::root(&name), object.at(&names));
        match value.as_int() {
            Some(..0) => errors.invalid(&path, value, "should be a non-negative integer"),
            Some(replicas) if replicas > i64::from(i32::MAX) => {
                errors.invalid(&path, value, format!("should be less than or equal to {}", i32::MAX));
            }
            _ => {}
        }
    }

    /// The names of the fields that `fieldSelector` may name, besides name and namespace.
    pub fn selectors(&self) -> impl Iterator<Item = String> {
        self.version().selectable.iter().map(|path| path.join("."))
    }

    /// The values by which an object is selected, in any version, with the names of their fields.
    pub fn selected(&self, object: &Value) -> Vec<(String, String)> {
        let mut selected: Vec<(String, String)> = Vec::new();
        for path in self.definition.versions.iter().flat_map(|version| &version.selectable) {
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

/// A scalar as selectors compare it.
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

/// The type of the metadata of every object.
fn metadata_type() -> Option<&'static Type> {
    let (_, field) = catalogue::kind("", "v1", "Namespace")?.of.field("metadata")?;
    match &field.shape {
        Shape::Struct(Ref::Static(of)) => Some(of),
        _ => None,
    }
}
