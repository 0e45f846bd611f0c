//! Changes stored objects without the rules of their kinds.

use flotilla_cluster::{Expectation, Object, Outcome, Revision};
use flotilla_proto::value::Value;

use super::precondition::{MODIFIED, wrong_uid};
use super::{Tables, Target, encode};
use crate::limits;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};

impl Tables {
    /// Changes a stored object without the rules of its kind, as actions on it do. Returns the new revision. `uid` and
    /// `revision` are preconditions where they are given.
    pub async fn revise(
        &self,
        target: Target<'_>,
        uid: Option<&str>,
        revision: Option<&str>,
        dry_run: bool,
        change: &(dyn Fn(&mut Value) -> ApiResult<()> + Sync),
    ) -> ApiResult<Revision> {
        let served = target.served;
        let conflict = |why: &str| ApiError::conflict(served.group(), &served.resource.name, target.name, why);
        for _ in 0..limits::CHANGE_ATTEMPTS {
            let current = self.current(served, target.namespace, target.name);
            let current = current.ok_or_else(|| served.not_found(target.name))?;
            let old = encode::stored_tree(&current)?;
            let mut object = old.clone();
            if let Some(uid) = uid {
                let own = object.str_at(&["metadata", "uid"]);
                if uid != own {
                    return Err(conflict(&wrong_uid(target, uid, own, dry_run)));
                }
            }
            if revision.is_some_and(|revision| revision != current.revision().to_string()) {
                return Err(conflict(MODIFIED));
            }
            change(&mut object)?;
            if dry_run {
                return Ok(current.revision());
            }
            encode::order_changed(&mut object, &served.stored.of, &old);
            let expectation = Expectation::Revision(current.revision());
            self.convert_to_store(served, &object, false).await?;
            let draft = encode::draft(served, &object)?;
            if let Outcome::Committed { object, .. } =
                self.put(served, current.key().clone(), expectation, draft).await?
            {
                return Ok(object.revision());
            }
        }
        Err(conflict(MODIFIED))
    }

    /// Stores an object once more, with the index terms that follow from the present definition of its resource, and
    /// changes nothing else. Does nothing if the object was written meanwhile.
    pub async fn renew_terms(&self, served: &Served, object: &Object) -> ApiResult<()> {
        let draft = encode::draft_as_is(served, &encode::stored_tree(object)?);
        let expectation = Expectation::Revision(object.revision());
        self.put(served, object.key().clone(), expectation, draft).await.map(drop)
    }
}
