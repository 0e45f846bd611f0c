//! Lists: which revision they show, and one page of them (API concepts, "Retrieving large results sets in chunks").

use std::sync::Arc;

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use flotilla_cluster::{
    Compacted, Cursor, Key, Object, Revision, Scope, Selection as Scan, Snapshot, SnapshotError, Table,
};
use flotilla_proto::json;
use flotilla_proto::value;

use super::selector::{FieldOperator, FieldRequirement, FieldSelector, LabelSelector, Selection};
use super::{Registry, Served, read};
use crate::field::{Errors, Path};
use crate::gateway::query::{Query, parse_revision};
use crate::limits;
use crate::status::{ApiError, ApiResult};

/// How tokens are encoded; read as leniently as the reference reads its own.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Version of continue tokens.
const TOKEN_VERSION: &str = "flotilla/v1";

/// What a list or watch asks for, read from the query.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// Which objects.
    pub selection: Selection,
    /// At most so many; 0 for all.
    pub limit: usize,
    /// Where to go on.
    pub token: String,
    /// `resourceVersion`, as it stands in the query.
    pub revision: String,
    /// `resourceVersionMatch`.
    pub revision_match: String,
    /// Whether it is a watch.
    pub watch: bool,
    /// Whether a watch begins with the present objects; `None` when the query does not say.
    pub initial_events: Option<bool>,
    /// Whether a watch sends bookmarks.
    pub bookmarks: bool,
    /// Seconds after which the server ends the request.
    pub timeout_seconds: Option<i64>,
}

impl Listing {
    /// Reads and checks the options of a list or watch.
    pub fn read(query: &Query<'_>, served: &Served, watch: bool) -> ApiResult<Self> {
        let watch = watch || query.flag("watch").unwrap_or(false);
        let limit = query.int("limit")?.unwrap_or(0).max(0);
        let timeout_seconds = query.int("timeoutSeconds")?;
        let labels = LabelSelector::parse(query.text("labelSelector"))?;
        let mut fields = FieldSelector::parse(query.text("fieldSelector"))?;
        fields.check(served.strategy, served.resource.namespaced)?;
        fields.rename(served.strategy.selectors);
        fields.rename(served.strategy.aliases);
        let listing = Self {
            selection: Selection { labels, fields },
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            token: query.text("continue").into(),
            revision: query.text("resourceVersion").into(),
            revision_match: query.text("resourceVersionMatch").into(),
            watch,
            initial_events: query.flag("sendInitialEvents"),
            bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
            timeout_seconds,
        };
        let mut errors = Errors::default();
        if watch {
            listing.check_watch(&mut errors)
        } else {
            listing.check_list(&mut errors)
        }
        if errors.is_empty() {
            Ok(listing)
        } else {
            Err(ApiError::invalid("meta.k8s.io", "ListOptions", "", &errors.0))
        }
    }

    /// The revision that is asked for; 0 for none.
    fn wanted(&self) -> ApiResult<u64> {
        parse_revision(&self.revision).map_err(|why| ApiError::bad_request(format!("invalid resource version: {why}")))
    }

    fn check_list(&self, errors: &mut Errors) {
        let path = Path::root("resourceVersionMatch");
        let wanted = self.revision_match.as_str();
        if !wanted.is_empty() {
            if self.revision.is_empty() {
                errors.forbidden(&path, "resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if !self.token.is_empty() {
                errors.forbidden(&path, "resourceVersionMatch is forbidden when continue is provided");
            }
            if !matches!(wanted, "Exact" | "NotOlderThan") {
                errors.not_supported(&path, wanted, &["Exact", "NotOlderThan", ""]);
            }
            if wanted == "Exact" && self.revision == "0" {
                errors.forbidden(&path, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
            }
        }
        if self.initial_events.is_some() {
            errors.forbidden(&Path::root("sendInitialEvents"), "sendInitialEvents is forbidden for list");
        }
    }

    fn check_watch(&self, errors: &mut Errors) {
        let path = Path::root("resourceVersionMatch");
        let wanted = self.revision_match.as_str();
        if self.initial_events.is_some() && wanted != "NotOlderThan" {
            errors.forbidden(&path, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
        }
        if !wanted.is_empty() {
            if self.initial_events.is_none() {
                let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                errors.forbidden(&path, why);
            }
            if wanted != "NotOlderThan" {
                errors.not_supported(&path, wanted, &["NotOlderThan"]);
            }
        }
        if !self.token.is_empty() {
            errors.forbidden(&path, "resourceVersionMatch is forbidden when continue is provided");
        }
    }

    /// Selects one object, as the deprecated watch paths do; 400 when the field selector demands another.
    pub fn select_name(&mut self, name: &str) -> ApiResult<()> {
        if self.selection.exact_field("metadata.name").is_some_and(|wanted| wanted != name) {
            return Err(ApiError::bad_request("fieldSelector metadata.name doesn't match requested name"));
        }
        let operator = FieldOperator::Equals;
        let requirement = FieldRequirement { field: "metadata.name".into(), operator, value: name.into() };
        self.selection.fields.0.push(requirement);
        Ok(())
    }

    /// The namespace that the list is about: of the path, or the one that a field selector demands.
    pub fn scope(&self, namespace: &str) -> Scope {
        match namespace {
            "" => self.selection.exact_field("metadata.namespace").map_or(Scope::All, Scope::namespace),
            own => Scope::namespace(own),
        }
    }
}

/// One answer to a list: a part of a snapshot.
pub struct Page {
    /// The revision that every object is shown at.
    pub revision: Revision,
    /// The token for the next page; `None` when this is the last.
    pub next: Option<String>,
    /// How many objects follow this page, where the server tells.
    pub remaining: Option<u64>,
    rows: Rows,
}

enum Rows {
    /// Gathered before the answer begins, because the answer's head depends on them.
    Gathered(std::vec::IntoIter<Arc<Object>>),
    /// Read while the answer is sent, so that memory does not grow with it.
    Streamed { cursor: Cursor, selection: Selection, done: bool },
}

impl Page {
    /// The same page, holding these objects.
    #[must_use]
    pub fn of(self, objects: Vec<Arc<Object>>) -> Self {
        Self { rows: Rows::Gathered(objects.into_iter()), ..self }
    }

    /// Appends the next objects of the page to `out`; false when there are none left.
    ///
    /// # Errors
    /// 410 when the client reads so slowly that the snapshot is gone.
    pub fn read(&mut self, out: &mut Vec<Arc<Object>>) -> ApiResult<bool> {
        match &mut self.rows {
            Rows::Gathered(rows) => {
                out.extend(rows.take(limits::LIST_CHUNK_OBJECTS));
                Ok(!rows.as_slice().is_empty())
            }
            Rows::Streamed { done: true, .. } => Ok(false),
            Rows::Streamed { cursor, selection, done } => {
                let from = out.len();
                let more = cursor.read(limits::LIST_CHUNK_OBJECTS, out).map_err(expired)?;
                if !selection.is_everything() {
                    let mut at = 0;
                    out.retain(|object| {
                        at += 1;
                        at <= from || selects(selection, object)
                    });
                }
                *done = !more;
                Ok(more)
            }
        }
    }
}

/// Whether an object is selected.
pub fn selects(selection: &Selection, object: &Object) -> bool {
    let key = object.key();
    selection.matches(key.namespace().unwrap_or(""), key.name(), object.terms())
}

impl Registry {
    /// One page of a list, once what it shows is here.
    pub async fn list(&self, served: &Served, namespace: &str, listing: &Listing) -> ApiResult<Page> {
        self.reach_for_list(served, listing).await?;
        self.page(served, namespace, listing)
    }

    /// Waits until what a list shows is here: every write that was acknowledged before, or the revision that it names.
    pub async fn reach_for_list(&self, served: &Served, listing: &Listing) -> ApiResult<()> {
        if !listing.token.is_empty() {
            return Ok(());
        }
        let table = self.table(served);
        match listing.wanted()? {
            0 if listing.revision.is_empty() => self.barrier(&table).await,
            0 => Ok(()),
            revision => self.reach(&table, revision).await,
        }
    }

    /// One page of a list of what is here, merged from all shards.
    pub fn page(&self, served: &Served, namespace: &str, listing: &Listing) -> ApiResult<Page> {
        let table = self.table(served);
        if !listing.token.is_empty() {
            let token = Token::read(&listing.token)?;
            if !matches!(listing.revision.as_str(), "" | "0") {
                let message = "specifying resource version is not allowed when using continue";
                return Err(ApiError::bad_request(message));
            }
            return next_page(served, &table, namespace, listing, token);
        }
        let snapshot = snapshot(&table, listing)?;
        // A limit is a wish: what is served from memory at revision 0 ignores it, as the reference does.
        let limit = if listing.revision == "0" { 0 } else { listing.limit };
        page(&table, snapshot, listing, namespace, limit, None)
    }
}

fn snapshot(table: &Table, listing: &Listing) -> ApiResult<Snapshot> {
    let revision = listing.wanted()?;
    let exactly = listing.revision_match == "Exact" || (listing.revision_match.is_empty() && listing.limit > 0);
    if revision == 0 || !exactly {
        return Ok(table.snapshot());
    }
    table.snapshot_at(Revision::new(revision)).map_err(|error| match error {
        SnapshotError::Compacted(compacted) => too_old(revision, compacted),
        SnapshotError::Future(future) => read::too_large(revision, future.current),
    })
}

fn next_page(served: &Served, table: &Table, namespace: &str, listing: &Listing, token: Token) -> ApiResult<Page> {
    if token.table != served.table.as_str() {
        return Err(ApiError::bad_request("invalid continue token: it belongs to another resource"));
    }
    let snapshot = match token.revision {
        // The client goes on without a consistent view, after its token expired.
        None => table.snapshot(),
        Some(revision) => match table.snapshot_at(revision) {
            Ok(snapshot) => snapshot,
            Err(_) => return Err(token.expired()),
        },
    };
    let limit = if listing.revision == "0" { 0 } else { listing.limit };
    page(table, snapshot, listing, namespace, limit, Some(token))
}

/// Makes a page of a snapshot, from its start or from where a token says.
fn page(
    table: &Table,
    snapshot: Snapshot,
    listing: &Listing,
    namespace: &str,
    limit: usize,
    token: Option<Token>,
) -> ApiResult<Page> {
    let selection = listing.selection.clone();
    let scope = listing.scope(namespace);
    if namespace_excluded(namespace, &selection) {
        let rows = Rows::Gathered(Vec::new().into_iter());
        return Ok(Page { revision: snapshot.revision(), next: None, remaining: None, rows });
    }
    let field = selection.fields.0.iter().find(|r| r.demands_term()).map(|r| (r.field.clone(), r.value.clone()));
    let scan = Scan { scope: scope.clone(), field, required: selection.marks() };
    let after = token.as_ref().map(|token| Key::new(&token.after));
    let revision = snapshot.revision();
    if let Some(key) = exact_key(&scope, &selection) {
        let found = snapshot.get(&key).map_err(expired)?;
        let rows: Vec<Arc<Object>> = found.into_iter().filter(|object| selects(&selection, object)).collect();
        return Ok(Page { revision, next: None, remaining: None, rows: Rows::Gathered(rows.into_iter()) });
    }
    if limit == 0 {
        let rows = Rows::Streamed { cursor: snapshot.cursor(scan, after), selection, done: false };
        return Ok(Page { revision, next: None, remaining: None, rows });
    }
    let mut rows: Vec<Arc<Object>> = Vec::new();
    let more = gather(&snapshot, scan, after, &selection, limit, &mut rows).map_err(expired)?;
    let counted = selection.is_everything();
    let seen = token.as_ref().map_or(0, |token| token.seen) + rows.len() as u64;
    let mut page = Page { revision, next: None, remaining: None, rows: Rows::Gathered(Vec::new().into_iter()) };
    if let (true, Some(last)) = (more, rows.last()) {
        let consistent = token.as_ref().is_none_or(|token| token.revision.is_some());
        let total = snapshot.count(&scope).map_err(expired)?;
        page.remaining = counted.then(|| total.saturating_sub(seen));
        let next = Token {
            table: table.id().as_str().to_owned(),
            epoch: table.epoch(),
            revision: consistent.then_some(revision),
            after: last.key().as_str().to_owned(),
            seen,
        };
        page.next = Some(next.write());
    }
    page.rows = Rows::Gathered(rows.into_iter());
    Ok(page)
}

/// The key of the only object that can be selected, where the selection names it.
fn exact_key(scope: &Scope, selection: &Selection) -> Option<String> {
    let name = selection.exact_field("metadata.name")?;
    match scope {
        Scope::Namespace(namespace) => Some(format!("{namespace}/{name}")),
        Scope::All => None,
    }
}

/// Whether a field selector demands another namespace than the path.
fn namespace_excluded(namespace: &str, selection: &Selection) -> bool {
    !namespace.is_empty() && selection.exact_field("metadata.namespace").is_some_and(|wanted| wanted != namespace)
}

/// Gathers up to `limit` selected objects; whether keys follow, selected or not.
fn gather(
    snapshot: &Snapshot,
    scan: Scan,
    after: Option<Key>,
    selection: &Selection,
    limit: usize,
    rows: &mut Vec<Arc<Object>>,
) -> Result<bool, Compacted> {
    let mut cursor = snapshot.cursor(scan.clone(), after);
    let (mut chunk, mut more) = (Vec::new(), true);
    while more && rows.len() < limit {
        more = cursor.read((limit - rows.len()).min(limits::LIST_CHUNK_OBJECTS), &mut chunk)?;
        rows.extend(chunk.drain(..).filter(|object| selects(selection, object)));
    }
    let Some(last) = rows.last().filter(|_| rows.len() >= limit) else { return Ok(false) };
    // Whether another object follows is not known yet: those that cannot be selected were left out.
    if !scan.required.is_empty() {
        cursor = snapshot.cursor(Scan { required: Vec::new(), ..scan }, Some(last.key().clone()));
        more = true;
    }
    while more && chunk.is_empty() {
        more = cursor.read(1, &mut chunk)?;
    }
    Ok(!chunk.is_empty())
}

/// Where a list goes on. Opaque to clients: base64 of JSON.
///
/// A table of several shards is merged in key order, so that the last key that was sent says of each shard where it
/// goes on: behind that key, or nowhere when it has no further one. That holds whatever shards there are, so that a
/// token survives a change of the shard map; the epoch of the map tells apart tokens of before and after.
struct Token {
    table: String,
    /// Of the shard map when the page was made.
    epoch: u64,
    /// `None` for a list that goes on without a consistent view.
    revision: Option<Revision>,
    /// The key of the last object that was sent.
    after: String,
    /// How many objects were sent.
    seen: u64,
}

impl Token {
    fn read(text: &str) -> ApiResult<Self> {
        let bad =
            |why: String| ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
        let padless = text.trim_end_matches('=');
        let bytes = BASE64.decode(padless).map_err(|error| {
            let at = match error {
                base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
                _ => padless.len() / 4 * 4,
            };
            bad(format!("illegal base64 data at input byte {at}"))
        })?;
        let parsed = json::parse(&bytes).map_err(|error| bad(error.to_string()))?;
        let version = parsed.str_at(&["v"]);
        if version != TOKEN_VERSION {
            return Err(bad(format!("server does not recognize this encoded version {version}")));
        }
        let after = parsed.str_at(&["k"]).to_owned();
        let revision = parsed.int_at(&["rv"]).and_then(|revision| u64::try_from(revision).ok());
        if after.is_empty() {
            return Err(bad("it names no place to go on".into()));
        }
        Ok(Self {
            table: parsed.str_at(&["t"]).to_owned(),
            revision: revision.map(Revision::new),
            after,
            epoch: parsed.int_at(&["e"]).and_then(|epoch| u64::try_from(epoch).ok()).unwrap_or(0),
            seen: parsed.int_at(&["n"]).and_then(|seen| u64::try_from(seen).ok()).unwrap_or(0),
        })
    }

    fn write(&self) -> String {
        let mut token = value!({"v": TOKEN_VERSION, "t": (self.table.as_str()), "k": (self.after.as_str())});
        token.set_at(&["e"], self.epoch as i64);
        token.set_at(&["n"], self.seen as i64);
        if let Some(revision) = self.revision {
            token.set_at(&["rv"], revision.get() as i64);
        }
        BASE64.encode(json::to_vec(&token))
    }

    /// 410 with a token by which the client may go on without a consistent view.
    fn expired(self) -> ApiError {
        let message = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";
        let next = Self { revision: None, ..self }.write();
        ExpiredToken { message, next }.into()
    }
}

struct ExpiredToken {
    message: &'static str,
    next: String,
}

impl From<ExpiredToken> for ApiError {
    fn from(token: ExpiredToken) -> Self {
        ApiError { list_continue: Some(token.next), ..ApiError::expired(token.message) }
    }
}

fn too_old(revision: u64, compacted: Compacted) -> ApiError {
    ApiError::expired(format!("The provided resource version {revision} is too old, the oldest is {}", compacted.floor))
}

fn expired(compacted: Compacted) -> ApiError {
    ApiError::expired(format!("the list took too long; history begins at {}", compacted.floor))
}
