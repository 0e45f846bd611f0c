//! Lists that are made as a whole: Tables of custom resources and of kinds that order their rows, and lists in
//! protobuf, except those of full objects of built-in kinds. Other threads than the workers make the large ones.

use std::sync::Arc;

use actix_web::HttpResponse;
use flotilla_cluster::Object;
use flotilla_proto::json;
use futures_util::FutureExt as _;
use futures_util::future::ready;

use super::items::{self, list_meta};
use crate::answer::{self, Encoded, Packed};
use crate::gateway::server::Gateway;
use crate::limits;
use crate::printing;
use crate::registry::{Page, Registry};
use crate::representation::{self, Show};
use crate::request::{Form, Representation};
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables;
use crate::unsent::{self, Pieces};

/// Answers with a page that is made as a whole.
pub(super) async fn respond(
    gateway: &Gateway,
    served: &Arc<Served>,
    mut page: Page,
    show: Show<'_>,
    warnings: &[String],
) -> ApiResult<HttpResponse> {
    if unsent::held() >= limits::WHOLE_ANSWERS_BYTES {
        return Err(ApiError::unavailable("too many answers wait to be taken by their clients", 1));
    }
    let includer = printing::Includer::from_query(show.include)?;
    let objects = page.read_all().await?;
    let bytes = objects.iter().map(|object| object.bytes().len()).sum::<usize>();
    let of = Whole {
        registry: Arc::clone(&gateway.registry),
        served: Arc::clone(served),
        page: page.of(Vec::new()),
        representation: show.representation,
        includer,
    };
    let gzip = show.gzip;
    let make = move || Ok::<_, ApiError>(answer::pack(of.make(objects)?, gzip));
    let packed: Packed = match bytes >= limits::LARGE_REQUEST_BYTES {
        true => gateway.large_requests.run(move || ready(make()).boxed_local()).await??,
        false => make()?,
    };
    Ok(answer::respond_packed(200, packed, warnings))
}

/// A list that is made as a whole.
struct Whole {
    registry: Arc<Registry>,
    served: Arc<Served>,
    /// The page without its objects.
    page: Page,
    representation: Representation,
    includer: printing::Includer,
}

impl Whole {
    fn make(self, objects: Vec<Arc<Object>>) -> ApiResult<Encoded> {
        match self.representation.form {
            Form::Table { version } => {
                let text = self.table(&objects, version)?;
                representation::finish_table(text, self.representation)
            }
            _ => self.message(&objects),
        }
    }

    /// Returns the table of the objects, rows in the order of their kind.
    fn table(&self, objects: &[Arc<Object>], version: &str) -> ApiResult<Vec<u8>> {
        let served = &*self.served;
        let mut items = Vec::with_capacity(objects.len());
        for (at, object) in objects.iter().enumerate() {
            // Custom resources are printed as clients see them: a stored object lacks the defaults of fields that its
            // schema got later.
            let stored = || served.custom.is_none().then(|| tables::stored_value(object)).transpose();
            match self.registry.tables.shown(served, object).and_then(|shown| Ok((shown, stored()?))) {
                Ok(item) => items.push(item),
                Err(error) => return Err(self.failed(objects, at, error)),
            }
        }
        let mut table = representation::table(served, version, self.includer);
        table.sort(&mut items, |(shown, stored)| stored.as_ref().unwrap_or(shown));
        let mut out = Vec::new();
        let revision = self.page.revision.to_string();
        table.begin(&list_meta(&self.page, &revision), &mut out);
        for (item, stored) in &items {
            table.row(item, printing::Encoded { stored: stored.as_ref(), ..printing::Encoded::default() }, &mut out);
        }
        table.end(&mut out);
        Ok(out)
    }

    /// Returns the list in protobuf, which states its length before its items.
    fn message(&self, objects: &[Arc<Object>]) -> ApiResult<Encoded> {
        let show = Show { representation: self.representation, include: None, gzip: false };
        let mut writer = items::json_writer(&self.registry, &self.served, show)?;
        let mut text = Pieces::default();
        writer.begin(&self.page, text.text())?;
        for (at, object) in objects.iter().enumerate() {
            writer.item(object, &mut text).map_err(|error| self.failed(objects, at, error))?;
        }
        writer.end(text.text());
        let tree = json::parse(&text.whole()).map_err(ApiError::internal)?;
        Ok(answer::encode_value(&tree, self.representation))
    }

    /// Returns the error of a list with an object that cannot be shown.
    fn failed(&self, objects: &[Arc<Object>], at: usize, error: ApiError) -> ApiError {
        let mut rest = objects[at + 1..].to_vec();
        self.registry.tables.list_failed(&self.served, &objects[at], error, |others| {
            others.append(&mut rest);
            Ok(false)
        })
    }
}
