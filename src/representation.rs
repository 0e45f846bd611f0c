//! Encodes objects in the form that a client asked for: whole, as metadata only, or as rows of a Table; in JSON, YAML
//! or protobuf.

use std::sync::Arc;

use flotilla_cluster::Object;
use flotilla_proto::schema::Column;
use flotilla_proto::value::Value;
use flotilla_proto::{json, order, protobuf, value};

use crate::answer::{self, Encoded};
use crate::printing;
use crate::registry::{self, Entity, Registry};
use crate::request::{Form, Media, Representation};
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables;

/// The form in which the objects of a list or of a watch are shown.
#[derive(Debug, Clone, Copy)]
pub struct Show<'a> {
    /// Form and encoding.
    pub representation: Representation,
    /// `includeObject` of tables.
    pub include: Option<&'a str>,
    /// Whether the client accepts gzip.
    pub gzip: bool,
}

/// Encodes an object in the form that the client asked for.
pub fn encode_entity(
    registry: &Registry,
    served: &Served,
    entity: &Entity,
    representation: Representation,
    include: Option<&str>,
) -> ApiResult<Encoded> {
    match (representation.form, entity) {
        (Form::Object, Entity::Stored(object))
            if representation.media == Media::Json && !representation.pretty && served.shows_as_stored(object) =>
        {
            crate::unreadable::prove(object)?;
            Ok(Encoded { bytes: object.bytes().clone(), content_type: Media::Json.name() })
        }
        (Form::Object, Entity::Stored(object))
            if representation.media == Media::Protobuf
                && served.is_stored_version()
                && !served.of().message.is_empty() =>
        {
            Ok(Encoded { bytes: transcode(served, object)?.into(), content_type: Media::Protobuf.name() })
        }
        (Form::Object, entity) => Ok(answer::encode_value(&*tree(registry, served, entity)?, representation)),
        (Form::Metadata { list: true, .. }, _) => {
            let kind = internal_name(served);
            let message =
                format!("you requested PartialObjectMetadataList, but the requested object is not a list (*{kind})");
            Err(ApiError::new(406, "NotAcceptable", message))
        }
        (Form::Metadata { version, .. }, entity) => {
            let shown = match (tree(registry, served, entity), entity) {
                // Metadata can be shown even if the rest of the object cannot be decoded.
                (Err(error), Entity::Stored(object)) => tables::metadata_alone(object).ok_or(error)?.into(),
                (shown, _) => shown?,
            };
            Ok(answer::encode_value(&partial(&shown, version), representation))
        }
        (Form::Table { version }, entity) => {
            let include = printing::Includer::from_query(include)?;
            let object = tree(registry, served, entity)?;
            let mut table = table(served, version, include);
            let mut out = Vec::with_capacity(1024);
            let stored = match entity {
                Entity::Stored(object) if served.custom.is_none() && !served.is_stored_version() => {
                    Some(tables::stored_value(object)?)
                }
                _ => None,
            };
            let encoded = printing::Encoded { stored: stored.as_ref(), ..printing::Encoded::default() };
            table.single(&object, encoded, &mut out);
            finish_table(out, representation)
        }
    }
}

/// Encodes a stored object in protobuf, in its stored version.
pub fn transcode(served: &Served, object: &Object) -> ApiResult<Vec<u8>> {
    let (mut message, mut out) = (Vec::new(), Vec::new());
    let text = tables::stored_text(object)?;
    protobuf::Transcoder::default().transcode(served.of(), text, &mut message).map_err(ApiError::internal)?;
    protobuf::write_object(&served.api_version(), &served.kind().name, &message, &mut out);
    Ok(out)
}

/// Encodes a Table, given as JSON text, in the encoding that the client asked for.
pub fn finish_table(mut json_text: Vec<u8>, representation: Representation) -> ApiResult<Encoded> {
    if representation.media == Media::Json && !representation.pretty {
        json_text.push(b'\n');
        return Ok(Encoded { bytes: json_text.into(), content_type: Media::Json.name() });
    }
    let tree = json::parse(&json_text).map_err(ApiError::internal)?;
    Ok(answer::encode_value(&tree, representation))
}

/// Returns the table writer of a resource.
pub fn table<'a>(served: &'a Served, version: &str, include: printing::Includer) -> printing::Table<'a> {
    let version = table_version(version);
    let columns: &[Column] = &served.resource.columns;
    let rows = rows(served);
    printing::Table::new(rows, columns, version, include, registry::now())
}

/// Returns the version of `meta.k8s.io` in which a table is shown.
pub fn table_version(version: &str) -> printing::Version {
    if version == "v1" { printing::Version::V1 } else { printing::Version::V1Beta1 }
}

/// Returns the printer of the table rows of a resource.
pub fn rows(served: &Served) -> &dyn printing::Rows {
    static OTHERS: printing::Printer = printing::Printer::of(printing::name_and_creation);
    if let Some(custom) = &served.custom {
        return &custom.version().table;
    }
    builtin_rows(served).unwrap_or(&OTHERS)
}

/// Returns the printer of the table rows of a built-in resource. Returns `None` if the resource has no columns of its
/// own.
pub fn builtin_rows(served: &Served) -> Option<&'static printing::Printer> {
    served.strategy.printer.as_ref()
}

/// Decodes an object in the version of the request.
pub fn tree(registry: &Registry, served: &Served, entity: &Entity) -> ApiResult<Arc<Value>> {
    match entity {
        Entity::Stored(object) => Ok(Arc::new(registry.tables.shown(served, object)?)),
        Entity::Built(value) => Ok(Arc::new(value.clone())),
    }
}

/// Returns an object's metadata as `PartialObjectMetadata`.
pub fn partial(object: &Value, version: &str) -> Value {
    let mut metadata = object.get("metadata").cloned().unwrap_or_else(Value::object);
    order::reorder_metadata(&mut metadata);
    value!({"kind": "PartialObjectMetadata", "apiVersion": (format!("meta.k8s.io/{version}")), "metadata": metadata})
}

/// Returns the name of a kind's internal type, as the reference's errors state it.
pub fn internal_name(served: &Served) -> String {
    let package = match served.stored.group.as_ref() {
        "" => "core",
        group => group.split('.').next().unwrap_or(group),
    };
    format!("{package}.{}", served.kind().name)
}

/// Returns the text of a stored object as an item of a JSON list: without kind and version, which the list states.
pub fn list_item<'t>(object: &Object, text: &'t [u8]) -> &'t [u8] {
    text.get(object.layout().head as usize..).unwrap_or_default()
}
