//! Decides about one object: deletes it, removes owners that are gone, or removes its finalizer once nothing remains to
//! be done about its dependents.

use flotilla_cluster::Object;
use flotilla_objects::api_version;
use flotilla_proto::value::Value;

use super::graph::{Item, waits};
use super::{Collector, is_deleting, metadata};
use crate::controllers::queue::Requeue;
use crate::limits;
use crate::registry::{FOREGROUND, ORPHAN};
use crate::request::{DeleteOptions, Propagation};
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::Target;

/// The state of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It exists.
    Solid,
    /// It is gone, or another object has its name.
    Absent,
    /// It exists, and waits for its dependents to be deleted (foreground deletion).
    Waiting,
    /// Unknown: its kind is not served, or it cannot be an owner of this object.
    Unknown,
}

/// The owners of an object, by their state.
#[derive(Debug, Default)]
struct Owners {
    solid: usize,
    waiting: usize,
    unknown: usize,
    /// UIDs of the owners that do not keep the object alive.
    gone: Vec<String>,
}

fn target<'a>(served: &'a Served, item: &'a Item) -> Target<'a> {
    let namespace = item.key.namespace().unwrap_or("");
    Target::object(served, namespace, item.key.name())
}

impl Collector {
    /// Checks an object, and takes the actions that its owners and dependents require.
    pub(super) async fn attempt(&self, item: Item) -> ApiResult<Requeue> {
        let served = self.served(item.table);
        let target = target(&served, &item);
        let Some(object) = self.agent.registry.tables.current(target.served, target.namespace, target.name) else {
            return Ok(Requeue::Never);
        };
        let metadata = metadata(&object)?;
        if metadata.str_at(&["uid"]) != &*item.uid {
            return Ok(Requeue::Never);
        }
        let done = if !is_deleting(&object) {
            self.judge(&item, target, &object, &metadata).await
        } else {
            match waits(&metadata) {
                Some(ORPHAN) => self.orphan(&item, target).await,
                Some(_) => self.foreground(&item, target).await,
                None => Ok(Requeue::Never),
            }
        };
        match done {
            // The object is gone, or another one has its name by now.
            Err(ApiError { code: 404, .. }) => Ok(Requeue::Never),
            other => other,
        }
    }

    /// Deletes an object if none of its owners exists; otherwise removes the owners that do not exist.
    async fn judge(&self, item: &Item, target: Target<'_>, object: &Object, metadata: &Value) -> ApiResult<Requeue> {
        let owners = self.owners(target, metadata).await?;
        if owners.solid + owners.waiting + owners.gone.len() == 0 || owners.unknown > 0 {
            return Ok(if owners.unknown > 0 {
                Requeue::After(limits::GARBAGE_UNKNOWN_KIND_RECHECK)
            } else {
                Requeue::Never
            });
        }
        if owners.solid > 0 {
            if !owners.gone.is_empty() {
                self.disown(item, target, &owners.gone).await?;
            }
            return Ok(Requeue::Never);
        }
        let dependents: Vec<Item> = self.graph.borrow().dependents(&item.uid).collect();
        let propagation = match waits(metadata) {
            _ if owners.waiting > 0 && !dependents.is_empty() => {
                self.unblock_circle(item, target, &dependents).await?;
                Propagation::Foreground
            }
            Some(ORPHAN) => Propagation::Orphan,
            Some(_) => Propagation::Foreground,
            None => Propagation::Background,
        };
        let options = DeleteOptions {
            propagation: Some(propagation),
            uid: Some(item.uid.to_string()),
            // The deletion must fail if the object has got other owners since.
            resource_version: Some(object.revision().to_string()),
            ..DeleteOptions::default()
        };
        self.agent.delete(target, &options).await?;
        Ok(Requeue::Never)
    }

    /// If any of the dependents waits for its own dependents, the object may be in a circle of owners, which would wait
    /// for ever. To break the circle, the object stops blocking its owners.
    async fn unblock_circle(&self, item: &Item, target: Target<'_>, dependents: &[Item]) -> ApiResult<()> {
        let circular = dependents.iter().any(|dependent| {
            let served = self.served(dependent.table);
            let of = self::target(&served, dependent);
            let current = self.agent.registry.tables.current(of.served, of.namespace, of.name);
            current.and_then(|object| metadata(&object).ok()).is_some_and(|metadata| waits_for_dependents(&metadata))
        });
        if !circular {
            return Ok(());
        }
        let unblock = |object: &mut Value| {
            each_owner(object, |owner| {
                if owner.is_true_at(&["blockOwnerDeletion"]) {
                    owner.set_at(&["blockOwnerDeletion"], false);
                }
            });
        };
        self.agent.edit(target, &item.uid, unblock).await
    }

    async fn owners(&self, target: Target<'_>, metadata: &Value) -> ApiResult<Owners> {
        let mut owners = Owners::default();
        for reference in metadata.list_at(&["ownerReferences"]) {
            let uid = || reference.str_at(&["uid"]).to_owned();
            match self.standing(target, reference).await? {
                Standing::Solid => owners.solid += 1,
                Standing::Absent => owners.gone.push(uid()),
                Standing::Waiting => {
                    owners.waiting += 1;
                    owners.gone.push(uid());
                }
                Standing::Unknown => owners.unknown += 1,
            }
        }
        Ok(owners)
    }

    /// Looks up an owner where it must be: in the namespace of the object, or among cluster-scoped objects.
    async fn standing(&self, target: Target<'_>, reference: &Value) -> ApiResult<Standing> {
        let api_version = reference.str_at(&["apiVersion"]);
        let (group, version) = api_version::split(api_version);
        let registry = &self.agent.registry;
        let kind = reference.str_at(&["kind"]);
        let stored = match registry.tables.resources.of_kind(group, kind) {
            Some(stored) if registry.tables.resources.find(group, version, &stored.resource.name).is_none() => None,
            Some(stored) => Some(stored),
            None => self.defined_before(group, kind),
        };
        let Some(stored) = stored else { return Ok(Standing::Unknown) };
        if stored.resource.namespaced && !target.served.resource.namespaced {
            return Ok(Standing::Unknown);
        }
        let namespace = if stored.resource.namespaced { target.namespace } else { "" };
        let owner = Target::object(&stored, namespace, reference.str_at(&["name"]));
        match self.seen(owner, reference.str_at(&["uid"]))? {
            // Another replica may have stored the owner, and this one has not seen it yet.
            Standing::Absent => {
                registry.tables.catch_up_with(owner.served, owner.namespace, owner.name).await?;
                self.seen(owner, reference.str_at(&["uid"]))
            }
            seen => Ok(seen),
        }
    }

    /// Returns the state of an owner as this replica sees it.
    fn seen(&self, owner: Target<'_>, uid: &str) -> ApiResult<Standing> {
        let Some(object) = self.agent.registry.tables.current(owner.served, owner.namespace, owner.name) else {
            return Ok(Standing::Absent);
        };
        let metadata = metadata(&object)?;
        Ok(if metadata.str_at(&["uid"]) != uid {
            Standing::Absent
        } else if waits_for_dependents(&metadata) {
            Standing::Waiting
        } else {
            Standing::Solid
        })
    }

    /// Removes owners from an object.
    async fn disown(&self, item: &Item, target: Target<'_>, uids: &[String]) -> ApiResult<()> {
        let disown = |object: &mut Value| {
            let metadata = object.get_mut("metadata");
            let owners = metadata.and_then(|of| of.get_mut("ownerReferences")).and_then(Value::as_array_mut);
            if let Some(owners) = owners {
                owners.retain(|owner| !uids.iter().any(|uid| uid == owner.str_at(&["uid"])));
            }
        };
        self.agent.edit(target, &item.uid, disown).await
    }

    /// Removes the `orphan` finalizer of an object, after removing the object from the owners of its dependents.
    async fn orphan(&self, item: &Item, target: Target<'_>) -> ApiResult<Requeue> {
        // A dependent that this replica has not seen yet would keep the owner, and be collected later.
        self.agent.registry.tables.catch_up().await?;
        tokio::time::sleep(limits::GARBAGE_SETTLE).await;
        let dependents: Vec<Item> = self.graph.borrow().dependents(&item.uid).collect();
        let uids = [item.uid.to_string()];
        for dependent in &dependents {
            let served = self.served(dependent.table);
            match self.disown(dependent, self::target(&served, dependent), &uids).await {
                Err(error) if error.code != 404 => return Err(error),
                _ => {}
            }
        }
        self.let_go(item, target, ORPHAN).await
    }

    /// Removes the `foregroundDeletion` finalizer of an object once the dependents that block it are gone. Until then,
    /// puts those that are not being deleted into the queue.
    async fn foreground(&self, item: &Item, target: Target<'_>) -> ApiResult<Requeue> {
        let blocking = self.graph.borrow().blocking(&item.uid);
        if blocking.is_empty() {
            return self.let_go(item, target, FOREGROUND).await;
        }
        for (dependent, deleting) in blocking {
            if !deleting {
                self.queue.add(dependent);
            }
        }
        Ok(Requeue::Never)
    }

    async fn let_go(&self, item: &Item, target: Target<'_>, finalizer: &str) -> ApiResult<Requeue> {
        let remove = |object: &mut Value| {
            let metadata = object.get_mut("metadata");
            let finalizers = metadata.and_then(|of| of.get_mut("finalizers")).and_then(Value::as_array_mut);
            if let Some(finalizers) = finalizers {
                finalizers.retain(|own| own.as_str() != Some(finalizer));
            }
        };
        self.agent.edit(target, &item.uid, remove).await?;
        Ok(Requeue::Never)
    }
}

fn waits_for_dependents(metadata: &Value) -> bool {
    let finalizers = metadata.list_at(&["finalizers"]);
    !metadata.at(&["deletionTimestamp"]).is_null() && finalizers.iter().any(|own| own.as_str() == Some(FOREGROUND))
}

fn each_owner(object: &mut Value, mut change: impl FnMut(&mut Value)) {
    let metadata = object.get_mut("metadata");
    let owners = metadata.and_then(|of| of.get_mut("ownerReferences")).and_then(Value::as_array_mut);
    owners.into_iter().flatten().for_each(&mut change);
}
