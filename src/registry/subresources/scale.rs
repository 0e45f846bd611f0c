//! `scale`: how many replicas an object has and is to have, for those who know nothing else of its kind.

use flotilla_proto::value::Value;
use flotilla_proto::{value, yaml};

use super::super::apply::Apply;
use super::super::patch::Patched;
use super::super::update::{Change, Replace, check_identity};
use super::super::{Entity, Incoming, PatchBody, Registry, Served, Target, WriteOptions, ownership};
use crate::field::{Errors, Path};
use crate::fieldmanager::scale as ownership_of_replicas;
use crate::gateway::Caller;
use crate::printing::selector;
use crate::status::{ApiError, ApiResult};

/// Where an object keeps its replicas: the versions that have them, and the path.
#[derive(Debug, Clone, Copy)]
pub struct Paths(ownership_of_replicas::Paths<'static>);

const REPLICAS: [&str; 2] = ["spec", "replicas"];
/// Kinds of the group `apps`.
pub const APPS: Paths = Paths(&[("apps/v1", Some(&REPLICAS))]);
/// Replication controllers.
pub const CONTROLLERS: Paths = Paths(&[("v1", Some(&REPLICAS))]);

/// The Scale of an object.
#[derive(Debug, Clone, Copy)]
pub struct ScaleOf<'a> {
    /// The object's resource, with the subresource.
    pub parent: Target<'a>,
    /// The resource as it is seen through this door: its kind is Scale.
    pub part: &'a Served,
    /// Where the object keeps its replicas.
    pub paths: Paths,
}

impl<'a> ScaleOf<'a> {
    fn target(&self) -> Target<'a> {
        Target { served: self.part, ..self.parent }
    }

    fn shown(&self, registry: &Registry, entity: &Entity) -> ApiResult<Entity> {
        let parent = match entity {
            Entity::Stored(object) => registry.shown(self.parent.served, object)?,
            Entity::Built(value) => value.clone(),
        };
        Ok(Entity::Built(scale_of(&parent)))
    }
}

impl Registry {
    /// The Scale of an object.
    pub async fn scale(&self, of: ScaleOf<'_>, revision: Option<&str>) -> ApiResult<Entity> {
        let object = self.get(of.parent.served, of.parent.namespace, of.parent.name, revision).await?;
        of.shown(self, &Entity::Stored(object))
    }

    /// Replaces the Scale of an object.
    pub async fn replace_scale(
        &self,
        of: ScaleOf<'_>,
        incoming: Incoming,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Entity> {
        check_identity(of.target(), &incoming.value)?;
        self.rescale(of, &mut Replace(incoming), options, caller).await
    }

    /// Changes the Scale of an object as a patch says.
    pub async fn patch_scale(
        &self,
        of: ScaleOf<'_>,
        body: PatchBody<'_>,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Entity> {
        self.must_exist(of.parent, caller).await?;
        let mut change = Patched::parse(of.target(), body, options)?;
        self.rescale(of, &mut change, options, caller).await
    }

    /// Applies a configuration to the Scale of an object.
    pub async fn apply_scale(
        &self,
        of: ScaleOf<'_>,
        body: &[u8],
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Entity> {
        let parsed =
            yaml::parse(body).map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))?;
        self.rescale(of, &mut Apply::new(of.target(), parsed.value, options), options, caller).await
    }

    async fn rescale(
        &self,
        of: ScaleOf<'_>,
        change: &mut (dyn Change + '_),
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Entity> {
        let written = self.update(of.parent, &mut Rescale { of, change, options }, options, caller).await?;
        of.shown(self, &written.entity)
    }
}

/// A change of an object by a change of its Scale.
struct Rescale<'a, 'c> {
    of: ScaleOf<'a>,
    change: &'c mut (dyn Change + 'c),
    options: &'a WriteOptions,
}

impl Change for Rescale<'_, '_> {
    fn apply(&mut self, current: &Value, caller: &mut Caller) -> ApiResult<Value> {
        let Paths(paths) = self.of.paths;
        let owners = current.at(&["metadata", "managedFields"]);
        let mut scale = scale_of(current);
        let scale_owners = ownership_of_replicas::to_scale(owners, paths)?;
        if !scale_owners.is_null() {
            scale.set_at(&["metadata", "managedFields"], scale_owners);
        }
        let mut new = self.change.apply(&scale, caller)?;
        if !self.change.owns_managed_fields() {
            let untracked = self.change.untracked();
            ownership::record(
                self.of.part,
                self.of.parent.subresource,
                self.options,
                Some(&scale),
                &mut new,
                untracked,
            );
        }
        validate(&new)?;
        let mut parent = current.clone();
        parent.set_at(&REPLICAS, new.int_at(&REPLICAS).unwrap_or(0));
        for field in ["resourceVersion", "uid"] {
            match new.at(&["metadata", field]) {
                Value::Null => drop(parent.remove_at(&["metadata", field])),
                stated => parent.set_at(&["metadata", field], stated.clone()),
            }
        }
        let api_version = current.str_at(&["apiVersion"]);
        let fields = new.at(&["metadata", "managedFields"]);
        match ownership_of_replicas::to_parent(owners, fields, api_version, paths)? {
            Value::Null => drop(parent.remove_at(&["metadata", "managedFields"])),
            fields => parent.set_at(&["metadata", "managedFields"], fields),
        }
        Ok(parent)
    }

    fn owns_managed_fields(&self) -> bool {
        true
    }

    fn names_uid(&self) -> bool {
        self.change.names_uid()
    }
}

/// The Scale of an object in the version of the request.
fn scale_of(parent: &Value) -> Value {
    let mut scale = value!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {}, "spec": {}, "status": {}});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        let member = parent.at(&["metadata", field]);
        if !member.is_null() {
            scale.set_at(&["metadata", field], member.clone());
        }
    }
    if let Some(replicas @ 1..) = parent.int_at(&REPLICAS) {
        scale.set_at(&REPLICAS, replicas);
    }
    scale.set_at(&["status", "replicas"], parent.int_at(&["status", "replicas"]).unwrap_or(0));
    let wanted = parent.at(&["spec", "selector"]);
    let text = if wanted.at(&["matchLabels"]).is_null() && wanted.at(&["matchExpressions"]).is_null() {
        selector::text(&value!({"matchLabels": (wanted.clone())}))
    } else {
        selector::text(wanted)
    };
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        scale.set_at(&["status", "selector"], text);
    }
    scale
}

fn validate(scale: &Value) -> ApiResult<()> {
    let mut errors = Errors::default();
    let replicas = scale.int_at(&REPLICAS).unwrap_or(0);
    if replicas < 0 {
        errors.invalid(&Path::root("spec.replicas"), &replicas.into(), "must be greater than or equal to 0");
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid("autoscaling", "Scale", scale.str_at(&["metadata", "name"]), &errors.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_scale_shows() {
        let parent = value!({
            "metadata": {"name": "d", "labels": {"a": "b"}},
            "spec": {"replicas": 2, "selector": {
                "matchLabels": {"b": "2"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}]
            }},
            "status": {"replicas": 1}
        });
        let expected = value!({
            "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "d"}, "spec": {"replicas": 2},
            "status": {"replicas": 1, "selector": "a in (x,y),b=2"}
        });
        assert_eq!(scale_of(&parent), expected);
        let plain = value!({"metadata": {}, "spec": {"replicas": 0, "selector": {"b": "2", "a": "1"}}});
        let scale = scale_of(&plain);
        assert_eq!(scale.at(&["spec"]), &Value::object());
        assert_eq!(scale.str_at(&["status", "selector"]), "a=1,b=2");
    }
}
