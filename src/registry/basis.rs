//! Decides whether the outcome of an attempt to change an object is final, or was based on a state that is too old.

use flotilla_cluster::Object;

use super::{Registry, Target};
use crate::request::Caller;
use crate::status::ApiResult;

impl Registry {
    /// Returns whether a decision that no write proved is final. `seen` is the state of the object on which the
    /// decision was based. If that state is [unconfirmed](crate::request::Basis::Unconfirmed), first waits until this
    /// replica has caught up.
    ///
    /// A write proves a decision that looked only at the object: the store makes the write only if the object is
    /// unchanged. Refusals, dry runs and writes that change nothing prove nothing. They must be based on a state that
    /// was current when the request came.
    pub(super) async fn confirm_basis(
        &self,
        target: Target<'_>,
        seen: Option<&Object>,
        caller: &mut Caller,
    ) -> ApiResult<bool> {
        let seen = seen.map(Object::revision);
        if caller.basis.take_unconfirmed() {
            self.tables.catch_up_with(target.served, target.namespace, target.name).await?;
            let now = self.tables.current(target.served, target.namespace, target.name);
            if now.map(|object| object.revision()) != seen {
                return Ok(false);
            }
        }
        if let Some(seen) = seen {
            self.tables.wait_promised(seen).await?;
        }
        Ok(true)
    }

    /// Returns whether the outcome of an attempt to change an object is final. If not, the caller repeats the attempt
    /// on a newer state. `seen` is the state on which the attempt was based. `stored` returns whether the store made a
    /// write in an outcome.
    pub(super) async fn is_final<T>(
        &self,
        target: Target<'_>,
        seen: &Object,
        tried: &ApiResult<Option<T>>,
        stored: fn(&T) -> bool,
        caller: &mut Caller,
    ) -> ApiResult<bool> {
        match tried {
            Ok(None) => Ok(false),
            Ok(Some(done)) if stored(done) => Ok(true),
            // The outcome of the write is unknown. A second attempt might be refused although the first one succeeded.
            Err(error) if error.code >= 500 => Ok(true),
            _ => self.confirm_basis(target, Some(seen), caller).await,
        }
    }
}

#[cfg(test)]
#[path = "basis_tests.rs"]
mod tests;
