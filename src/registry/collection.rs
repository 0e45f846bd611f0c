//! Deleting collections.

use futures_util::{StreamExt, stream};

use super::delete::warn_of_dependents;
use super::{DeleteOptions, Listing, Page, Registry, Served, Target};
use crate::limits;
use crate::request::Caller;
use crate::status::{ApiError, ApiResult};

impl Registry {
    /// Deletes every selected object of a namespace; answers with them as they were.
    pub async fn delete_collection(
        &self,
        served: &Served,
        namespace: &str,
        listing: &Listing,
        options: &DeleteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Page> {
        warn_of_dependents(served, options, caller);
        let mut page = self.list(served, namespace, listing).await?;
        let mut objects = Vec::new();
        while page.read(&mut objects)? {}
        let options = &DeleteOptions { is_of_collection: true, ..options.clone() };
        // Begun in the order of the list, so that watchers see them go in it; those on their way share the fsyncs.
        let deletions = stream::iter(&objects).map(|object| {
            let mut caller = Caller { warnings: Vec::new(), ..caller.clone() };
            async move {
                let target = Target { served, namespace, name: object.key().name(), subresource: "" };
                let deleted = match self.delete(target, options, &mut caller).await {
                    Err(ApiError { code: 404, .. }) | Ok(_) => Ok(()),
                    Err(error) => Err(error),
                };
                (deleted, caller)
            }
        });
        // One that cannot be deleted holds no others up.
        let outcomes: Vec<_> = deletions.buffered(limits::COLLECTION_DELETIONS).collect().await;
        let mut all = Ok(());
        for (deleted, told) in outcomes {
            all = all.and(deleted);
            caller.annotations.extend(told.annotations);
            for warning in told.warnings {
                if !caller.warnings.contains(&warning) {
                    caller.warnings.push(warning);
                }
            }
        }
        all?;
        Ok(page.of(objects))
    }
}
