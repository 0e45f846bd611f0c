//! Removes an object that cannot be decoded (`ignoreStoreReadErrorWithClusterBreakingPotential`, KEP-3926). Its owners,
//! finalizers and preconditions cannot be checked, and therefore the removal needs a permission of its own.

use std::sync::Arc;

use flotilla_cluster::{Expectation, Mutation, Object, Outcome, Write};

use super::delete::Deleted;
use super::{DeleteOptions, Registry, Target};
use crate::access::{Attributes, Inquiry, ResourceAttributes};
use crate::request::Caller;
use crate::status::{ApiError, ApiResult};

/// The verb that the user needs.
const VERB: &str = "unsafe-delete-ignore-read-errors";

impl Registry {
    /// Removes an object that cannot be decoded. Ignores finalizers and owners. Returns `None` if the object has
    /// changed meanwhile.
    ///
    /// # Errors
    /// 422 when other options are set; 403 when the user lacks the permission.
    pub(super) async fn remove_unreadable(
        &self,
        target: Target<'_>,
        current: &Arc<Object>,
        options: &DeleteOptions,
        caller: &Caller,
    ) -> ApiResult<Option<Deleted>> {
        match &options.despite_read_errors {
            Some(errors) if errors.is_empty() => {}
            Some(errors) => return Err(ApiError::invalid("meta.k8s.io", "DeleteOptions", "", &errors.0)),
            None => return Ok(None),
        }
        self.authorize_unsafe(target, caller).await?;
        let write = Write {
            table: target.served.table.clone(),
            key: current.key().clone(),
            expectation: Expectation::Revision(current.revision()),
            mutation: Mutation::Delete,
        };
        let (resource, user) = (target.served.table.as_str(), &caller.identity.user().name);
        tracing::warn!(resource, object = %current.key(), user = user.as_str(), "an object that cannot be read is removed");
        Ok(match self.tables.write(write).await? {
            Outcome::Committed { object, .. } => Some(Deleted::removed_unread(object)),
            Outcome::Conflict { .. } => None,
        })
    }

    async fn authorize_unsafe(&self, target: Target<'_>, caller: &Caller) -> ApiResult<()> {
        let (group, resource) = (target.served.group(), &*target.served.resource.name);
        let (namespace, name) = (target.namespace, target.name);
        let version = &*target.served.kind().version;
        let of = ResourceAttributes { verb: VERB, group, version, resource, namespace, name, ..Default::default() };
        let decide = |inquiry: &Inquiry| {
            self.tables.authorizer.decide(caller.identity.user(), &Attributes::Resource(of), inquiry)
        };
        let decision = caller.inquiry.settled(caller.ends, decide).await;
        if decision.is_allowed() {
            return Ok(());
        }
        let why = format!("not permitted to do \"{VERB}\", reason: {}", decision.reason);
        Err(ApiError::forbidden(group, resource, name, &why))
    }
}
