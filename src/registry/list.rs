//! Lists objects: one page of those that exist at a revision (API concepts, "Retrieving large results sets in chunks").

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use flotilla_cluster::{
    Compacted, Cursor, Key, Object, Revision, Scope, Selection as Scan, Snapshot, SnapshotError, Table,
};

use super::continuation::Token;
use super::{Listing, Registry, Served, snapshot_at, too_large};
use crate::limits;
use crate::scan::scan;
use crate::selector::Selection;
use crate::status::{ApiError, ApiResult};
use crate::turn::Turn;

/// One page of a list: a part of a snapshot.
pub struct Page {
    /// The revision at which every object is shown.
    pub revision: Revision,
    /// The token for the next page. `None` when this is the last.
    pub next: Option<String>,
    /// The number of objects that follow this page. `None` if the server does not state it.
    pub remaining: Option<u64>,
    rows: Rows,
}

enum Rows {
    /// Read before the answer begins, because the head of the answer depends on them.
    Collected(std::vec::IntoIter<Arc<Object>>),
    /// Read while the answer is sent: memory does not grow with the length of the list.
    Streamed(Box<Streamed>),
}

/// A page that is read while it is sent.
struct Streamed {
    cursor: Cursor,
    selection: Selection,
    done: bool,
}

impl Page {
    /// Returns the last page of a list, with these objects.
    fn last(revision: Revision, objects: Vec<Arc<Object>>) -> Self {
        Self { revision, next: None, remaining: None, rows: Rows::Collected(objects.into_iter()) }
    }

    /// Returns the same page with these objects instead.
    #[must_use]
    pub fn of(self, objects: Vec<Arc<Object>>) -> Self {
        Self { rows: Rows::Collected(objects.into_iter()), ..self }
    }

    /// Returns whether an object is, or may be, on the page.
    pub fn may_have(&self, object: &Object) -> bool {
        match &self.rows {
            Rows::Collected(rows) => rows.as_slice().iter().any(|row| row.key() == object.key()),
            Rows::Streamed(streamed) => {
                streamed.cursor.scope().contains(object.key()) && selects(&streamed.selection, object)
            }
        }
    }

    /// Appends the next objects of the page to `out`. Returns false when none are left.
    ///
    /// # Errors
    /// 410 when the client reads so slowly that the snapshot is gone.
    pub fn read(&mut self, out: &mut Vec<Arc<Object>>) -> ApiResult<bool> {
        self.read_some(limits::LIST_CHUNK_OBJECTS, out)
    }

    /// Returns all objects of the page that were not read yet. Yields to other tasks meanwhile.
    ///
    /// # Errors
    /// As for [`Page::read`].
    pub async fn read_all(&mut self) -> ApiResult<Vec<Arc<Object>>> {
        let (mut objects, mut turn) = (Vec::new(), Turn::begin());
        while self.read(&mut objects)? {
            turn.pause().await;
        }
        Ok(objects)
    }

    /// Does the same as [`Page::read`] for at most `most` objects.
    fn read_some(&mut self, most: usize, out: &mut Vec<Arc<Object>>) -> ApiResult<bool> {
        match &mut self.rows {
            Rows::Collected(rows) => {
                out.extend(rows.take(most));
                Ok(!rows.as_slice().is_empty())
            }
            Rows::Streamed(streamed) if streamed.done => Ok(false),
            Rows::Streamed(streamed) => {
                let Streamed { cursor, selection, done } = &mut **streamed;
                let from = out.len();
                let more = cursor.read(most.min(objects_at_once(selection)), out).map_err(expired)?;
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

/// The objects of a page one by one. Callers may wait between two objects until the client has taken the first.
pub struct OneByOne {
    /// The page that holds the objects.
    pub page: Page,
    read: VecDeque<Arc<Object>>,
    more: bool,
    /// Size of the object that was returned last, in bytes.
    size: usize,
    /// Bytes of the objects that were returned since the turn was checked.
    returned: usize,
}

impl OneByOne {
    /// Begins with the first object of a page.
    pub fn of(page: Page) -> Self {
        Self { page, read: VecDeque::new(), more: true, size: 0, returned: 0 }
    }

    /// Returns the next object. Returns `None` at the end. Is pending when the turn is over before an object was found.
    /// Reads fewer objects at a time if they are large, since each keeps its version in memory while the client waits.
    ///
    /// # Errors
    /// 410 when the client reads so slowly that the snapshot is gone.
    pub fn poll_next(&mut self, cx: &mut Context<'_>, turn: &mut Turn) -> Poll<ApiResult<Option<Arc<Object>>>> {
        if self.returned >= limits::TURN_BYTES {
            ready!(turn.poll_pause(cx));
            self.returned = 0;
        }
        while self.read.is_empty() && self.more {
            ready!(turn.poll_pause(cx));
            let most = (limits::LIST_READ_BYTES / self.size.max(1)).clamp(1, limits::LIST_CHUNK_OBJECTS);
            let mut read = Vec::from(std::mem::take(&mut self.read));
            self.more = self.page.read_some(most, &mut read)?;
            self.read = read.into();
        }
        Poll::Ready(Ok(self.read.pop_front().inspect(|object| {
            self.size = object.bytes().len();
            self.returned += self.size;
        })))
    }

    /// Appends some of the remaining objects to `out`. Returns false when none are left.
    ///
    /// # Errors
    /// As for [`OneByOne::poll_next`].
    pub fn read(&mut self, out: &mut Vec<Arc<Object>>) -> ApiResult<bool> {
        out.extend(self.read.drain(..));
        self.more = self.more && self.page.read(out)?;
        Ok(self.more)
    }
}

/// Returns whether a selection matches an object, as far as the stored form of the object decides that.
pub fn selects(selection: &Selection, object: &Object) -> bool {
    let key = object.key();
    selection.matches(key.namespace().unwrap_or(""), key.name(), object.terms())
}

/// Returns the number of objects that are compared with a selection before the time is checked. It is smaller for a
/// selection with many requirements.
fn objects_at_once(selection: &Selection) -> usize {
    (limits::SELECTION_CHECKS / selection.requirements().max(1)).clamp(1, limits::LIST_CHUNK_OBJECTS)
}

impl Registry {
    /// Returns one page of a list, after waiting until this replica has the state that it must show.
    pub async fn list(&self, served: &Served, namespace: &str, listing: &Listing) -> ApiResult<Page> {
        self.reach_for_list(served, listing).await?;
        let page = self.page(served, namespace, listing)?.read().await?;
        let page = self.convert_page(served, page, &listing.selection.converted).await?;
        if listing.is_recent() {
            self.tables.wait_promised(page.revision).await?;
        }
        Ok(page)
    }

    /// Waits until this replica has the state that a list must show: every acknowledged write, or the revision that the
    /// list or its token names. A token may come from a replica that is ahead of this one.
    pub async fn reach_for_list(&self, served: &Served, listing: &Listing) -> ApiResult<()> {
        let table = self.tables.table(served);
        if let Some(token) = token(served, listing)? {
            return match token.revision {
                None => {
                    self.tables.barrier(&table).await?;
                    self.tables.store.renew_closed_revision(&table).await;
                    Ok(())
                }
                Some(revision) => self.tables.reach(&table, revision.get()).await,
            };
        }
        match listing.wanted()? {
            0 if listing.revision.is_empty() => {
                self.tables.barrier(&table).await?;
                self.tables.store.renew_closed_revision(&table).await;
                Ok(())
            }
            0 => {
                self.tables.store.wait_for_last_change(&table).await;
                self.tables.store.renew_closed_revision(&table).await;
                Ok(())
            }
            revision => self.tables.reach(&table, revision).await,
        }
    }

    /// Returns one page of the objects that this replica has, merged from all shards. The objects are not read yet.
    pub fn page(&self, served: &Served, namespace: &str, listing: &Listing) -> ApiResult<UnreadPage> {
        let table = self.tables.table(served);
        // A limit is only a request: the reference ignores it in lists from memory at revision 0. It keeps no events in
        // memory.
        let is_event = served.resource.name == "events" && matches!(served.group(), "" | "events.k8s.io");
        let is_unlimited = listing.revision == "0" && !is_event;
        let limit = if is_unlimited { 0 } else { listing.limit };
        let token = token(served, listing)?;
        let snapshot = match &token {
            Some(token) => snapshot_of(&table, token)?,
            None => snapshot(&table, listing, listing.names_one(served, namespace))?,
        };
        let selection = listing.selection.clone();
        let scope = listing.scope(namespace);
        let is_empty = namespace_excluded(namespace, &selection);
        Ok(UnreadPage { table, snapshot, selection, scope, is_empty, limit, token })
    }
}

/// Returns the state to list. With a limit, a revision names the state; but a list of one object ignores its limit.
fn snapshot(table: &Table, listing: &Listing, is_of_one: bool) -> ApiResult<Snapshot> {
    let revision = listing.wanted()?;
    let in_pages = listing.limit > 0 && !is_of_one;
    let exactly = listing.revision_match == "Exact" || (listing.revision_match.is_empty() && in_pages);
    if revision == 0 || !exactly {
        return Ok(table.snapshot());
    }
    snapshot_at(table, Revision::new(revision)).map_err(|error| match error {
        SnapshotError::Compacted(_) => too_old(),
        SnapshotError::Future(future) => too_large(revision, future.current),
    })
}

/// Returns the continue token of a list. Returns `None` for the first page. Returns 400 where a token is not allowed.
fn token(served: &Served, listing: &Listing) -> ApiResult<Option<Token>> {
    if listing.token.is_empty() {
        return Ok(None);
    }
    let token = Token::read(&listing.token)?;
    if !matches!(listing.revision.as_str(), "" | "0") {
        return Err(ApiError::bad_request("specifying resource version is not allowed when using continue"));
    }
    if token.table != served.table.as_str() {
        return Err(ApiError::bad_request("invalid continue token: it belongs to another resource"));
    }
    Ok(Some(token))
}

/// Returns the snapshot that a continue token names.
fn snapshot_of(table: &Table, token: &Token) -> ApiResult<Snapshot> {
    // `None` means that the client continues without a consistent view, after its token expired.
    let Some(revision) = token.revision else { return Ok(table.snapshot()) };
    snapshot_at(table, revision).map_err(|error| match error {
        SnapshotError::Compacted(_) => token.expired(),
        SnapshotError::Future(future) => too_large(revision.get(), future.current),
    })
}

/// A page of a snapshot whose objects are not read yet. Begins at the start of the snapshot, or at the position of a
/// token.
pub struct UnreadPage {
    table: Arc<Table>,
    snapshot: Snapshot,
    selection: Selection,
    scope: Scope,
    /// Whether the selection demands another namespace than the path.
    is_empty: bool,
    /// The largest number of objects on the page; 0 for all.
    limit: usize,
    token: Option<Token>,
}

impl UnreadPage {
    /// Reads the objects of a page that has a limit. Yields to other tasks meanwhile.
    ///
    /// # Errors
    /// 410 when this takes so long that the snapshot is gone.
    pub async fn read(self) -> ApiResult<Page> {
        let revision = self.snapshot.revision();
        if self.is_empty {
            return Ok(Page::last(revision, Vec::new()));
        }
        let Self { snapshot, selection, scope, .. } = &self;
        if let Some(key) = exact_key(scope, selection) {
            let found = snapshot.get(&key).map_err(expired)?;
            return Ok(Page::last(revision, found.into_iter().filter(|object| selects(selection, object)).collect()));
        }
        if self.limit == 0 {
            let cursor = snapshot.cursor(self.scan(), self.after());
            let rows = Rows::Streamed(Box::new(Streamed { cursor, selection: self.selection, done: false }));
            return Ok(Page { revision, next: None, remaining: None, rows });
        }
        let (rows, more) = self.gather().await.map_err(expired)?;
        self.finish(rows, more).await.map_err(expired)
    }

    fn scan(&self) -> Scan {
        let field =
            self.selection.fields.0.iter().find(|r| r.demands_term()).map(|r| (r.field.clone(), r.value.clone()));
        Scan { scope: self.scope.clone(), field, required: self.selection.term_filters() }
    }

    fn after(&self) -> Option<Key> {
        self.token.as_ref().map(|token| Key::new(&token.after))
    }

    /// Returns up to `limit` selected objects, and whether further keys follow, selected or not.
    async fn gather(&self) -> Result<(Vec<Arc<Object>>, bool), Compacted> {
        let (limit, selection, scan) = (self.limit, &self.selection, self.scan());
        let mut cursor = self.snapshot.cursor(scan.clone(), self.after());
        let (mut rows, mut chunk, mut more, mut turn) = (Vec::new(), Vec::new(), true, Turn::begin());
        while more && rows.len() < limit {
            more = cursor.read((limit - rows.len()).min(objects_at_once(selection)), &mut chunk)?;
            rows.extend(chunk.drain(..).filter(|object| selects(selection, object)));
            turn.pause().await;
        }
        let Some(last) = rows.last().filter(|_| rows.len() >= limit) else { return Ok((rows, false)) };
        // The cursor skipped objects that cannot be selected. It does not yet know whether another object follows.
        if !scan.required.is_empty() {
            cursor = self.snapshot.cursor(Scan { required: Vec::new(), ..scan }, Some(last.key().clone()));
            more = true;
        }
        while more && chunk.is_empty() {
            more = cursor.read(1, &mut chunk)?;
        }
        Ok((rows, !chunk.is_empty()))
    }

    /// Returns the page of these objects, with a token for the next one if more follow.
    async fn finish(self, rows: Vec<Arc<Object>>, more: bool) -> Result<Page, Compacted> {
        let revision = self.snapshot.revision();
        let last = match rows.last() {
            Some(last) if more => last.key().as_str().to_owned(),
            _ => return Ok(Page::last(revision, rows)),
        };
        let is_counted = self.selection.is_everything();
        let before = match &self.token {
            // The pages before showed other revisions, so the objects up to this page are counted anew.
            Some(Token { revision: None, after, .. }) if is_counted => {
                passed(&self.snapshot, &self.scope, after).await?
            }
            token => token.as_ref().map_or(0, |token| token.seen),
        };
        let seen = before + rows.len() as u64;
        let total = self.snapshot.count(&self.scope)?;
        let (table, epoch) = (self.table.id().as_str().to_owned(), self.table.epoch());
        let next = Token { table, epoch, revision: Some(revision), after: last, seen };
        let remaining = is_counted.then(|| total.saturating_sub(seen));
        Ok(Page { next: Some(next.write()), remaining, ..Page::last(revision, rows) })
    }
}

/// Returns the number of objects up to and including a key.
async fn passed(snapshot: &Snapshot, scope: &Scope, after: &str) -> Result<u64, Compacted> {
    let (mut passed, mut turn) = (0, Turn::begin());
    for objects in scan(snapshot, Scan { scope: scope.clone(), ..Scan::default() }) {
        let objects = objects?;
        let before = objects.iter().take_while(|object| object.key().as_str() <= after).count();
        passed += before as u64;
        if before < objects.len() {
            break;
        }
        turn.pause().await;
    }
    Ok(passed)
}

/// Returns the key of the only object that can be selected, if the selection names it.
fn exact_key(scope: &Scope, selection: &Selection) -> Option<String> {
    let name = selection.exact_field("metadata.name")?;
    match scope {
        Scope::Namespace(namespace) => Some(format!("{namespace}/{name}")),
        Scope::All => None,
    }
}

/// Returns whether a field selector demands another namespace than the path.
fn namespace_excluded(namespace: &str, selection: &Selection) -> bool {
    !namespace.is_empty() && selection.exact_field("metadata.namespace").is_some_and(|wanted| wanted != namespace)
}

fn too_old() -> ApiError {
    ApiError::expired("The resourceVersion for the provided list is too old.")
}

fn expired(compacted: Compacted) -> ApiError {
    ApiError::expired(format!("the list took too long; history begins at {}", compacted.floor))
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
