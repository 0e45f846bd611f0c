//! Lists: one page of what is at a revision (API concepts, "Retrieving large results sets in chunks").

use std::collections::VecDeque;
use std::sync::Arc;

use flotilla_cluster::{
    Compacted, Cursor, Key, Object, Revision, Scope, Selection as Scan, Snapshot, SnapshotError, Table,
};

use super::continuation::Token;
use super::{Listing, Registry, Served, read};
use crate::limits;
use crate::selector::Selection;
use crate::status::{ApiError, ApiResult};

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

    /// Whether an object is, or may be, on the page.
    pub fn may_have(&self, object: &Object) -> bool {
        match &self.rows {
            Rows::Gathered(rows) => rows.as_slice().iter().any(|row| row.key() == object.key()),
            Rows::Streamed { cursor, selection, .. } => {
                cursor.scope().contains(object.key()) && selects(selection, object)
            }
        }
    }

    /// Appends the next objects of the page to `out`; false when there are none left.
    ///
    /// # Errors
    /// 410 when the client reads so slowly that the snapshot is gone.
    pub fn read(&mut self, out: &mut Vec<Arc<Object>>) -> ApiResult<bool> {
        self.read_some(limits::LIST_CHUNK_OBJECTS, out)
    }

    /// As [`Page::read`], of at most so many objects.
    fn read_some(&mut self, most: usize, out: &mut Vec<Arc<Object>>) -> ApiResult<bool> {
        match &mut self.rows {
            Rows::Gathered(rows) => {
                out.extend(rows.take(most));
                Ok(!rows.as_slice().is_empty())
            }
            Rows::Streamed { done: true, .. } => Ok(false),
            Rows::Streamed { cursor, selection, done } => {
                let from = out.len();
                let more = cursor.read(most, out).map_err(expired)?;
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

/// The objects of a page one by one, for whoever stops between two of them until a client has taken the first.
pub struct OneByOne {
    /// The page that they are of.
    pub page: Page,
    read: VecDeque<Arc<Object>>,
    more: bool,
    /// Bytes of the last one.
    size: usize,
}

impl OneByOne {
    /// Those of a page.
    pub fn of(page: Page) -> Self {
        Self { page, read: VecDeque::new(), more: true, size: 0 }
    }

    /// The next object. Of large ones fewer are read at a time: each keeps its version for as long as the client waits.
    ///
    /// # Errors
    /// 410 when the client reads so slowly that the snapshot is gone.
    pub fn next_object(&mut self) -> ApiResult<Option<Arc<Object>>> {
        while self.read.is_empty() && self.more {
            let most = (limits::LIST_READ_BYTES / self.size.max(1)).clamp(1, limits::LIST_CHUNK_OBJECTS);
            let mut read = Vec::from(std::mem::take(&mut self.read));
            self.more = self.page.read_some(most, &mut read)?;
            self.read = read.into();
        }
        Ok(self.read.pop_front().inspect(|object| self.size = object.bytes().len()))
    }

    /// Appends some of those that are left to `out`; false when there are no more.
    ///
    /// # Errors
    /// As for [`OneByOne::next_object`].
    pub fn read(&mut self, out: &mut Vec<Arc<Object>>) -> ApiResult<bool> {
        out.extend(self.read.drain(..));
        self.more = self.more && self.page.read(out)?;
        Ok(self.more)
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
        let page = self.page(served, namespace, listing)?;
        let page = self.convert_page(served, page).await?;
        if listing.is_recent() {
            self.promised(page.revision).await?;
        }
        Ok(page)
    }

    /// Waits until what a list shows is here: every write that was acknowledged before, or the revision that it names,
    /// as its token does, which may be of a replica that is ahead.
    pub async fn reach_for_list(&self, served: &Served, listing: &Listing) -> ApiResult<()> {
        let table = self.table(served);
        if let Some(token) = token(served, listing)? {
            return match token.revision {
                None => {
                    self.barrier(&table).await?;
                    self.store.freshened(&table).await;
                    Ok(())
                }
                Some(revision) => self.reach(&table, revision.get()).await,
            };
        }
        match listing.wanted()? {
            0 if listing.revision.is_empty() => {
                self.barrier(&table).await?;
                self.store.freshened(&table).await;
                Ok(())
            }
            0 => {
                self.store.settled(&table).await;
                self.store.freshened(&table).await;
                Ok(())
            }
            revision => self.reach(&table, revision).await,
        }
    }

    /// One page of a list of what is here, merged from all shards.
    pub fn page(&self, served: &Served, namespace: &str, listing: &Listing) -> ApiResult<Page> {
        let table = self.table(served);
        if let Some(token) = token(served, listing)? {
            return next_page(&table, namespace, listing, token);
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
    read::at(table, Revision::new(revision)).map_err(|error| match error {
        SnapshotError::Compacted(compacted) => too_old(revision, compacted),
        SnapshotError::Future(future) => read::too_large(revision, future.current),
    })
}

/// Where a list goes on, if it does; 400 where that cannot be.
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

fn next_page(table: &Table, namespace: &str, listing: &Listing, token: Token) -> ApiResult<Page> {
    let snapshot = match token.revision {
        // The client goes on without a consistent view, after its token expired.
        None => table.snapshot(),
        Some(revision) => match read::at(table, revision) {
            Ok(snapshot) => snapshot,
            Err(SnapshotError::Compacted(_)) => return Err(token.expired()),
            Err(SnapshotError::Future(future)) => return Err(read::too_large(revision.get(), future.current)),
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
    let before = match &token {
        // What was sent was of another revision.
        Some(Token { revision: None, after, .. }) if more && counted => {
            passed(&snapshot, &scope, after).map_err(expired)?
        }
        token => token.as_ref().map_or(0, |token| token.seen),
    };
    let seen = before + rows.len() as u64;
    let mut page = Page { revision, next: None, remaining: None, rows: Rows::Gathered(Vec::new().into_iter()) };
    if let (true, Some(last)) = (more, rows.last()) {
        let total = snapshot.count(&scope).map_err(expired)?;
        page.remaining = counted.then(|| total.saturating_sub(seen));
        let next = Token {
            table: table.id().as_str().to_owned(),
            epoch: table.epoch(),
            revision: Some(revision),
            after: last.key().as_str().to_owned(),
            seen,
        };
        page.next = Some(next.write());
    }
    page.rows = Rows::Gathered(rows.into_iter());
    Ok(page)
}

/// How many objects there are up to a key.
fn passed(snapshot: &Snapshot, scope: &Scope, after: &str) -> Result<u64, Compacted> {
    let mut cursor = snapshot.cursor(Scan { scope: scope.clone(), ..Scan::default() }, None);
    let (mut passed, mut objects) = (0, Vec::new());
    loop {
        let more = cursor.read(limits::LIST_CHUNK_OBJECTS, &mut objects)?;
        let before = objects.iter().take_while(|object| object.key().as_str() <= after).count();
        passed += before as u64;
        if !more || before < objects.len() {
            return Ok(passed);
        }
        objects.clear();
    }
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

fn too_old(revision: u64, compacted: Compacted) -> ApiError {
    ApiError::expired(format!("The provided resource version {revision} is too old, the oldest is {}", compacted.floor))
}

fn expired(compacted: Compacted) -> ApiError {
    ApiError::expired(format!("the list took too long; history begins at {}", compacted.floor))
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
