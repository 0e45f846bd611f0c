//! PUT: replaces an object, or creates it if its kind allows that.

use super::change::{Replace, check_identity};
use super::precondition::{MODIFIED, registry_key};
use super::{Incoming, Registry, Target, WriteOptions, Written, convert, place};
use crate::limits;
use crate::request::Caller;
use crate::status::{ApiError, ApiResult};

impl Registry {
    /// Replaces an object by a decoded body, or creates it if the kind allows that.
    pub async fn replace(
        &self,
        target: Target<'_>,
        mut incoming: Incoming,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Written> {
        place(target, &mut incoming.value)?;
        check_identity(target, &incoming.value)?;
        if !target.served.strategy.create_on_update || !target.subresource.is_empty() {
            convert::default(target.served, &mut incoming.value)?;
            return self.update(target, &mut Replace(incoming), options, caller).await;
        }
        // Other clients may create or delete the object between two steps.
        for _ in 0..limits::CHANGE_ATTEMPTS {
            let is_absent = self.tables.current(target.served, target.namespace, target.name).is_none();
            if is_absent && !self.confirm_basis(target, None, caller).await? {
                continue;
            }
            let (mut incoming, race) = (incoming.clone(), if is_absent { "AlreadyExists" } else { "NotFound" });
            let written = if is_absent {
                self.create_by_put(target, incoming, options, caller).await
            } else {
                convert::default(target.served, &mut incoming.value)?;
                self.update(target, &mut Replace(incoming), options, caller).await
            };
            match written {
                Err(error) if error.reason == race && self.presence_changed(target, is_absent) => {}
                written => return written,
            }
        }
        Err(ApiError::conflict(target.served.group(), &target.served.resource.name, target.name, MODIFIED))
    }

    /// Returns whether the object was created or deleted meanwhile.
    fn presence_changed(&self, target: Target<'_>, was_absent: bool) -> bool {
        self.tables.current(target.served, target.namespace, target.name).is_none() != was_absent
    }

    async fn create_by_put(
        &self,
        target: Target<'_>,
        mut incoming: Incoming,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Written> {
        let stated = incoming.value.str_at(&["metadata", "uid"]);
        if !stated.is_empty() {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {stated}, UID in object meta: ",
                registry_key(target, options.dry_run)
            );
            return Err(ApiError::conflict(target.served.group(), &target.served.resource.name, target.name, &why));
        }
        incoming.value.remove_at(&["metadata", "resourceVersion"]);
        self.create(target, incoming, options, caller).await
    }
}
