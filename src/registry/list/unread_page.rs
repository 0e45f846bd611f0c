//! A page of a list before its objects are read.

use std::sync::Arc;

use flotilla_cluster::{Compacted, Key, Object, Scope, Selection as Scan, Snapshot, Table};

use super::page::{Page, Rows, Streamed, expired, objects_at_once, selects};
use crate::registry::continuation::Token;
use crate::scan::scan;
use crate::selector::Selection;
use crate::status::ApiResult;
use crate::turn::Turn;

/// A page of a snapshot whose objects are not read yet. Begins at the start of the snapshot, or at the position of a
/// token.
pub struct UnreadPage {
    pub(super) table: Arc<Table>,
    pub(super) snapshot: Snapshot,
    pub(super) selection: Selection,
    pub(super) scope: Scope,
    /// Whether the selection demands another namespace than the path.
    pub(super) is_empty: bool,
    /// The largest number of objects on the page; 0 for all.
    pub(super) limit: usize,
    pub(super) token: Option<Token>,
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
