//! Writers of lists, which append one item at a time as JSON.

use std::sync::Arc;

use flotilla_cluster::Object;
use flotilla_proto::schema::{Column, Ref};
use flotilla_proto::value::Value;
use flotilla_proto::{json, value};

use super::reformatted::{Layout, Reformatted};
use crate::printing;
use crate::registry::{self, Page, Registry};
use crate::representation::{self, Show};
use crate::request::{Form, Media, Representation};
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables;
use crate::unsent::Pieces;

/// Writes a list piece by piece.
pub(super) trait ItemWriter: Send {
    /// Appends everything before the first item.
    fn begin(&mut self, page: &Page, out: &mut Vec<u8>) -> ApiResult<()>;
    /// Appends an item, and the separator before it.
    fn item(&mut self, object: &Object, out: &mut Pieces) -> ApiResult<()>;
    /// Returns whether writing an item costs little more than copying stored text.
    fn copies(&self, object: &Object) -> bool;
    /// Appends everything after the last item.
    fn end(&self, out: &mut Vec<u8>);
    /// Returns the part that all writers have.
    fn common(&self) -> &Common;
    /// Returns the member of the list that holds the items.
    fn member(&self) -> &'static str {
        "items"
    }
}

/// Returns the writer of a list in a form that does not need all items at once.
pub(super) fn writer(registry: &Arc<Registry>, served: &Arc<Served>, show: Show<'_>) -> ApiResult<Box<dyn ItemWriter>> {
    let json = json_writer(registry, served, show)?;
    Ok(match show.representation {
        Representation { media: Media::Yaml, .. } => Box::new(Reformatted::new(json, Layout::Yaml)),
        Representation { media: Media::Json, pretty: true, .. } => Box::new(Reformatted::new(json, Layout::Indented)),
        _ => json,
    })
}

/// Returns the writer of a list in compact JSON.
pub(super) fn json_writer(
    registry: &Arc<Registry>,
    served: &Arc<Served>,
    show: Show<'_>,
) -> ApiResult<Box<dyn ItemWriter>> {
    let common = Common { registry: Arc::clone(registry), served: Arc::clone(served), first: true };
    Ok(match show.representation.form {
        Form::Object => Box::new(Objects { common, end: b"]}\n".to_vec() }),
        Form::Metadata { version, .. } => Box::new(Partials { common, version }),
        Form::Table { version } => {
            let include = printing::Includer::from_query(show.include)?;
            let columns = static_columns(served).ok_or_else(|| ApiError::internal("the columns may change"))?;
            let version = representation::table_version(version);
            let rows =
                representation::builtin_rows(served).ok_or_else(|| ApiError::internal("the columns may change"))?;
            Box::new(Rows { common, table: printing::Table::new(rows, columns, version, include, registry::now()) })
        }
    })
}

/// Returns the columns of a built-in resource. `None` for a custom one, whose columns may change.
pub(super) fn static_columns(served: &Served) -> Option<&'static [Column]> {
    match &served.resource {
        Ref::Static(resource) => Some(&resource.columns),
        Ref::Shared(_) | Ref::Late(_) => None,
    }
}

/// The part that all writers have: the listed resource, and whether an item was written.
pub(super) struct Common {
    pub(super) registry: Arc<Registry>,
    pub(super) served: Arc<Served>,
    first: bool,
}

impl Common {
    fn comma(&mut self, out: &mut Vec<u8>) {
        if !std::mem::take(&mut self.first) {
            out.push(b',');
        }
    }
}

fn head(kind: &str, api_version: &str, metadata: &Value, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"kind\":");
    json::write_str(kind, out);
    out.extend_from_slice(b",\"apiVersion\":");
    json::write_str(api_version, out);
    out.extend_from_slice(b",\"metadata\":");
    json::write(metadata, out);
    out.extend_from_slice(b",\"items\":");
}

/// Returns the metadata of a list.
pub(super) fn list_metadata(page: &Page) -> Value {
    let mut metadata = value!({"resourceVersion": (page.revision.to_string())});
    if let Some(next) = &page.next {
        metadata.set_at(&["continue"], next.as_str());
    }
    if let Some(remaining) = page.remaining {
        metadata.set_at(&["remainingItemCount"], remaining as i64);
    }
    metadata
}

/// Writes objects of a resource. For custom resources it sorts the members of the list, as Go writes maps.
struct Objects {
    common: Common,
    /// The text after the items.
    end: Vec<u8>,
}

impl ItemWriter for Objects {
    fn begin(&mut self, page: &Page, out: &mut Vec<u8>) -> ApiResult<()> {
        let mut metadata = list_metadata(page);
        let served = &self.common.served;
        let (kind, api_version) = (&*served.resource.list_kind, served.api_version());
        if served.custom.is_none() {
            head(kind, &api_version, &metadata, out);
            out.push(b'[');
            return Ok(());
        }
        if page.next.is_none() {
            metadata.set_at(&["continue"], "");
        }
        metadata.sort_members();
        out.extend_from_slice(b"{\"apiVersion\":");
        json::write_str(&api_version, out);
        out.extend_from_slice(b",\"items\":[");
        self.end = b"],\"kind\":".to_vec();
        json::write_str(kind, &mut self.end);
        self.end.extend_from_slice(b",\"metadata\":");
        json::write(&metadata, &mut self.end);
        self.end.extend_from_slice(b"}\n");
        Ok(())
    }

    fn item(&mut self, object: &Object, out: &mut Pieces) -> ApiResult<()> {
        self.common.comma(out.text());
        if self.common.served.shows_as_stored(object) {
            let text = tables::stored_text(object)?;
            if self.common.served.custom.is_some() {
                out.share_part(object.bytes(), text);
            } else {
                out.text().push(b'{');
                out.share_part(object.bytes(), representation::list_item(object, text));
            }
            return Ok(());
        }
        let mut shown = self.common.registry.tables.shown(&self.common.served, object)?;
        if self.common.served.custom.is_none() {
            shown.remove_at(&["kind"]);
            shown.remove_at(&["apiVersion"]);
        }
        json::write(&shown, out.text());
        Ok(())
    }

    fn copies(&self, object: &Object) -> bool {
        self.common.served.shows_as_stored(object)
    }

    fn end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.end);
    }

    fn common(&self) -> &Common {
        &self.common
    }
}

struct Partials {
    common: Common,
    version: &'static str,
}

impl ItemWriter for Partials {
    fn begin(&mut self, page: &Page, out: &mut Vec<u8>) -> ApiResult<()> {
        let metadata = list_metadata(page);
        head("PartialObjectMetadataList", &format!("meta.k8s.io/{}", self.version), &metadata, out);
        Ok(())
    }

    fn item(&mut self, object: &Object, out: &mut Pieces) -> ApiResult<()> {
        let out = out.text();
        out.push(if std::mem::take(&mut self.common.first) { b'[' } else { b',' });
        out.extend_from_slice(b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/");
        out.extend_from_slice(self.version.as_bytes());
        out.extend_from_slice(b"\",\"metadata\":");
        tables::show_metadata(&self.common.served, object, out)?;
        out.push(b'}');
        Ok(())
    }

    fn copies(&self, _object: &Object) -> bool {
        true
    }

    fn end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.common.first { b"null}\n".as_slice() } else { b"]}\n" });
    }

    fn common(&self) -> &Common {
        &self.common
    }
}

/// Writes rows of a table. [`super::whole`] makes tables of kinds that order their rows, or whose columns are not
/// static.
struct Rows {
    common: Common,
    table: printing::Table<'static>,
}

impl ItemWriter for Rows {
    fn begin(&mut self, page: &Page, out: &mut Vec<u8>) -> ApiResult<()> {
        let revision = page.revision.to_string();
        self.table.begin(&list_meta(page, &revision), out);
        Ok(())
    }

    fn member(&self) -> &'static str {
        "rows"
    }

    fn item(&mut self, object: &Object, out: &mut Pieces) -> ApiResult<()> {
        let (served, out) = (&self.common.served, out.text());
        if !served.is_stored_version() {
            let value = self.common.registry.tables.shown(served, object)?;
            let stored = tables::stored_part(object, self.table.reads())?;
            self.table.row(&value, printing::Encoded { stored: Some(&stored), ..Default::default() }, out);
            return Ok(());
        }
        let value = tables::stored_part(object, self.table.reads())?;
        let (metadata, text) = (object.metadata(), tables::stored_text(object)?);
        let encoded = printing::Encoded { metadata: Some(metadata), object: Some(text), stored: None };
        self.table.row(&value, encoded, out);
        Ok(())
    }

    fn copies(&self, _object: &Object) -> bool {
        self.common.served.is_stored_version() && self.table.reads() != json::Part::Whole
    }

    fn end(&self, out: &mut Vec<u8>) {
        self.table.end(out);
        out.push(b'\n');
    }

    fn common(&self) -> &Common {
        &self.common
    }
}

/// Returns the metadata of a table's list.
pub(super) fn list_meta<'a>(page: &'a Page, revision: &'a str) -> printing::ListMeta<'a> {
    printing::ListMeta {
        resource_version: revision,
        continue_token: page.next.as_deref().unwrap_or(""),
        remaining: page.remaining.map(|remaining| remaining as i64),
    }
}
