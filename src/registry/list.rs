//! Lists objects: one page of those that exist at a revision (API concepts, "Retrieving large results sets in chunks").

mod page;
mod unread_page;

use flotilla_cluster::{Revision, Snapshot, SnapshotError, Table};

pub use self::page::{OneByOne, Page, selects};
pub use self::unread_page::UnreadPage;
use super::continuation::Token;
use super::{Listing, Registry, Served, snapshot_at, too_large};
use crate::selector::Selection;
use crate::status::{ApiError, ApiResult};

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
                    self.tables.renew_expired_revision(&table).await
                }
                Some(revision) => self.tables.reach(&table, revision.get()).await,
            };
        }
        match listing.wanted()? {
            0 if listing.revision.is_empty() => {
                self.tables.barrier(&table).await?;
                self.tables.renew_expired_revision(&table).await
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

/// Returns whether a field selector demands another namespace than the path.
fn namespace_excluded(namespace: &str, selection: &Selection) -> bool {
    !namespace.is_empty() && selection.exact_field("metadata.namespace").is_some_and(|wanted| wanted != namespace)
}

fn too_old() -> ApiError {
    ApiError::expired("The resourceVersion for the provided list is too old.")
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
