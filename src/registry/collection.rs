//! Deleting collections.

use super::delete::warn_of_dependents;
use super::{DeleteOptions, Listing, Page, Registry, Served, Target};
use crate::gateway::Caller;
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
        for object in &objects {
            let target = Target { served, namespace, name: object.key().name(), subresource: "" };
            match self.delete(target, options, caller).await {
                Err(ApiError { code: 404, .. }) | Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(page.of(objects))
    }
}
