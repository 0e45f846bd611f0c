//! Deletes collections of objects.

use std::collections::HashSet;

use futures_util::{StreamExt, stream};

use super::delete::warn_of_dependents;
use super::{DeleteOptions, Listing, Page, Registry, Served, Target};
use crate::limits;
use crate::request::{Caller, Notices};
use crate::status::{ApiError, ApiResult};
use crate::turn::Turn;

impl Registry {
    /// Deletes every selected object of a namespace. Returns the objects as they were.
    pub async fn delete_collection(
        &self,
        served: &Served,
        namespace: &str,
        listing: &Listing,
        options: &DeleteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Page> {
        warn_of_dependents(served, options, caller);
        let listing = listing.of_deletion(served, namespace);
        let mut page = self.list(served, namespace, &listing).await?;
        let objects = page.read_all().await?;
        let options = &DeleteOptions { is_of_collection: true, ..options.clone() };
        let asker = &Caller { notices: Notices::default(), ..caller.clone() };
        let (mut all, mut notices) = (Ok(()), Notices::default());
        let mut known: HashSet<String> = caller.notices.warnings.iter().cloned().collect();
        let mut take = |(deleted, warnings, annotations): (ApiResult<()>, Vec<String>, Vec<(String, String)>)| {
            if all.is_ok() {
                all = deleted;
            }
            annotations.into_iter().for_each(|(key, value)| notices.annotate(key, value));
            for warning in warnings {
                if !notices.is_full() && known.insert(warning.clone()) {
                    notices.warn(warning);
                }
            }
        };
        // Deletions begin in the order of the list, and watchers see them in that order. Concurrent deletions share
        // fsyncs, and a failed one does not stop the others.
        let deletions = stream::iter(&objects).map(|object| {
            let mut caller = asker.clone();
            async move {
                let target = Target::object(served, namespace, object.key().name());
                let deleted = match self.delete(target, options, &mut caller).await {
                    Err(ApiError { code: 404, .. }) | Ok(_) => Ok(()),
                    Err(error) => Err(error),
                };
                (deleted, caller.notices.warnings, caller.notices.annotations)
            }
        });
        let mut deletions = Box::pin(deletions.buffered(limits::COLLECTION_DELETIONS));
        let mut turn = Turn::begin();
        while let Some(done) = deletions.next().await {
            take(done);
            turn.pause().await; // lets other tasks run, even if no deletion waits, as in a dry run
        }
        drop(deletions);
        caller.notices.warnings.extend(notices.warnings);
        caller.notices.annotations.extend(notices.annotations);
        all?;
        Ok(page.of(objects))
    }
}
