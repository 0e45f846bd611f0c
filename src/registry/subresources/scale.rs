//! `scale`: reads and sets the replicas of an object, for clients that know nothing else of its kind.

use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::super::apply::Apply;
use super::super::change::{Change, Replace, check_identity};
use super::super::ownership::Recorded;
use super::super::patch::Patched;
use super::super::{Entity, Incoming, PatchBody, Registry, Served, Target, WriteOptions, place};
use crate::field::{Errors, Path};
use crate::fieldmanager::scale as ownership_of_replicas;
use crate::printing::selector;
use crate::request::Caller;
use crate::status::{ApiError, ApiResult};

/// The reference's error for an apply to the Scale of a custom resource.
const UNAPPLIED: &str = "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, Kind=Scale) to \
    proper version: request to convert CR to an invalid group/version: autoscaling/v1";
/// Path of the desired replicas in a Scale, and in built-in kinds.
const REPLICAS: [&str; 2] = ["spec", "replicas"];
/// Path of the observed replicas in a Scale, and in built-in kinds.
const OBSERVED: [&str; 2] = ["status", "replicas"];
/// The value of `spec.replicas` in a Scale while it is changed and the custom resource has no replicas. No client can
/// ask for it.
const UNSET: i64 = i32::MIN as i64;

/// The paths at which an object keeps the values that its Scale shows.
#[derive(Debug)]
pub struct Paths<'a> {
    /// Path of the desired replicas.
    replicas: Vec<&'a str>,
    /// Path of the observed replicas.
    observed: Vec<&'a str>,
    selector: Selector<'a>,
    /// Versions of the kind, each with the path of its replicas. The path is `None` for a version without a scale.
    versions: Vec<(String, Option<Vec<&'a str>>)>,
}

/// The path at which an object keeps its label selector.
#[derive(Debug)]
enum Selector<'a> {
    /// In its spec, as a label selector or as a map of labels.
    Spec,
    /// As text at this path.
    Text(Vec<&'a str>),
    /// Nowhere.
    None,
}

impl<'a> Paths<'a> {
    /// Returns the paths of a resource that has a scale.
    pub fn of(served: &'a Served) -> Self {
        let Some(custom) = &served.custom else {
            return Self {
                replicas: REPLICAS.to_vec(),
                observed: OBSERVED.to_vec(),
                selector: Selector::Spec,
                versions: vec![(served.api_version(), Some(REPLICAS.to_vec()))],
            };
        };
        let names = |path: &'a Vec<String>| path.iter().map(String::as_str).collect::<Vec<_>>();
        let own = custom.version().scale.as_ref();
        let versions = custom.definition().versions.iter();
        Self {
            replicas: own.map(|scale| names(&scale.replicas)).unwrap_or_default(),
            observed: own.map(|scale| names(&scale.observed)).unwrap_or_default(),
            selector: own
                .and_then(|scale| scale.selector.as_ref())
                .map_or(Selector::None, |path| Selector::Text(names(path))),
            versions: versions
                .map(|of| (of.api_version(), of.scale.as_ref().map(|scale| names(&scale.replicas))))
                .collect(),
        }
    }

    /// Calls `use_them` with the path of the replicas in each version, in the form that field management takes.
    fn by_version<T>(&self, use_them: impl FnOnce(ownership_of_replicas::Paths<'_>) -> T) -> T {
        let versions: Vec<_> =
            self.versions.iter().map(|(version, path)| (version.as_str(), path.as_deref())).collect();
        use_them(&versions)
    }

    fn selector_of(&self, parent: &Value) -> Option<String> {
        match &self.selector {
            Selector::None => None,
            Selector::Text(path) => Some(parent.str_at(path).to_owned()),
            Selector::Spec => {
                let wanted = parent.at(&["spec", "selector"]);
                let is_plain = wanted.at(&["matchLabels"]).is_null() && wanted.at(&["matchExpressions"]).is_null();
                let text = match is_plain {
                    true => selector::text(&value!({"matchLabels": (wanted.clone())})),
                    false => selector::text(wanted),
                };
                text.map(|text| text.to_string())
            }
        }
    }
}

/// The Scale of an object.
#[derive(Debug, Clone, Copy)]
pub struct ScaleOf<'a> {
    /// The object's resource, with the subresource.
    pub parent: Target<'a>,
    /// The resource as it is seen through this path: its kind is Scale.
    pub part: &'a Served,
    /// The paths at which the object keeps the values that its Scale shows.
    pub paths: &'a Paths<'a>,
}

impl<'a> ScaleOf<'a> {
    fn target(&self) -> Target<'a> {
        Target { served: self.part, ..self.parent }
    }

    async fn shown(&self, registry: &Registry, entity: &Entity) -> ApiResult<Entity> {
        if let Entity::Stored(object) = entity {
            registry.tables.convert_to_show(self.parent.served, std::slice::from_ref(object)).await?;
        }
        let parent = match entity {
            Entity::Stored(object) => registry.tables.shown(self.parent.served, object)?,
            Entity::Built(value) => value.clone(),
        };
        Ok(Entity::Built(scale_of(&parent, self.paths)))
    }
}

impl Registry {
    /// Returns the Scale of an object.
    pub async fn scale(&self, of: ScaleOf<'_>, revision: Option<&str>) -> ApiResult<Entity> {
        let object = self.tables.get(of.parent.served, of.parent.namespace, of.parent.name, revision).await?;
        self.tables.convert_to_show(of.parent.served, std::slice::from_ref(&object)).await?;
        let parent = self.tables.shown(of.parent.served, &object)?;
        if of.parent.served.custom.is_some() && parent.at(&of.paths.replicas).is_null() {
            let path = format!(".{}", of.paths.replicas.join("."));
            return Err(ApiError::internal(format_args!("the spec replicas field {path:?} does not exist")));
        }
        Ok(Entity::Built(scale_of(&parent, of.paths)))
    }

    /// Replaces the Scale of an object.
    pub async fn replace_scale(
        &self,
        of: ScaleOf<'_>,
        mut incoming: Incoming,
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Entity> {
        place(of.target(), &mut incoming.value)?;
        check_identity(of.target(), &incoming.value)?;
        self.rescale(of, &mut Replace(incoming), options, caller).await
    }

    /// Changes the Scale of an object by a patch.
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
        if of.parent.served.custom.is_some() {
            return Err(ApiError::unknown(UNAPPLIED)); // the reference cannot do it either
        }
        let mut change = Apply::read(of.target(), body, options, caller)?;
        self.rescale(of, &mut change, options, caller).await
    }

    async fn rescale(
        &self,
        of: ScaleOf<'_>,
        change: &mut (dyn Change + '_),
        options: &WriteOptions,
        caller: &mut Caller,
    ) -> ApiResult<Entity> {
        let written =
            self.update(of.parent, &mut Rescale { of, change, options, owners: Value::Null }, options, caller).await?;
        of.shown(self, &written.entity).await
    }
}

/// Returns 409 if the client changes the Scale of another object with this name.
fn check_uid(of: ScaleOf<'_>, scale: &Value, parent: &Value) -> ApiResult<()> {
    let (stated, own) = (scale.str_at(&["metadata", "uid"]), parent.str_at(&["metadata", "uid"]));
    if stated.is_empty() || stated == own {
        return Ok(());
    }
    let served = of.parent.served;
    let resource = format!("{}/{}", served.resource.name, of.parent.subresource);
    let why = format!("Precondition failed: UID in precondition: {stated}, UID in object meta: {own}");
    Err(ApiError::conflict(served.group(), &resource, of.parent.name, &why))
}

/// A change of an object through its Scale.
struct Rescale<'a, 'c> {
    of: ScaleOf<'a>,
    change: &'c mut (dyn Change + 'c),
    options: &'a WriteOptions,
    /// The field owners of the Scale after the change.
    owners: Value,
}

impl Change for Rescale<'_, '_> {
    fn apply(&mut self, current: &Value, caller: &mut Caller) -> ApiResult<Value> {
        let paths = self.of.paths;
        let owners = current.at(&["metadata", "managedFields"]);
        let mut scale = scale_of(current, paths);
        let has_replicas = self.of.parent.served.custom.is_none() || !current.at(&paths.replicas).is_null();
        if !has_replicas {
            scale.set_at(&REPLICAS, UNSET);
        }
        let scale_owners = paths.by_version(|paths| ownership_of_replicas::to_scale(owners, paths))?;
        if !scale_owners.is_null() {
            scale.set_at(&["metadata", "managedFields"], scale_owners);
        }
        let mut new = self.change.apply(&scale, caller)?;
        if !self.change.owns_managed_fields() {
            let (served, subresource) = (self.of.part, self.of.parent.subresource);
            let (options, untracked) = (self.options, self.change.untracked());
            Recorded { served, subresource, options, live: Some(&scale), untracked }.record(&mut new);
        }
        place(self.of.target(), &mut new)?;
        check_identity(self.of.target(), &new)?;
        if !has_replicas && new.int_at(&REPLICAS) == Some(UNSET) {
            let path = format!(".{}", paths.replicas.join("."));
            return Err(ApiError::bad_request(format!("the spec replicas field {path:?} cannot be empty")));
        }
        if self.of.parent.served.custom.is_none() {
            validate(&new)?; // the schema of a custom resource validates its own replicas
        }
        if !self.change.names_uid() {
            check_uid(self.of, &new, current)?;
        }
        let mut parent = current.clone();
        parent.set_at(&paths.replicas, new.int_at(&REPLICAS).unwrap_or(0));
        match new.at(&["metadata", "uid"]) {
            Value::Null => drop(parent.remove_at(&["metadata", "uid"])),
            stated => parent.set_at(&["metadata", "uid"], stated.clone()),
        }
        // A request without a revision means the current one, even for kinds that refuse unconditional updates.
        let stated = new.str_at(&["metadata", "resourceVersion"]);
        if !stated.is_empty() {
            parent.set_at(&["metadata", "resourceVersion"], stated);
        }
        self.owners = new.at(&["metadata", "managedFields"]).clone();
        let api_version = current.str_at(&["apiVersion"]);
        let fields = new.at(&["metadata", "managedFields"]);
        let merged = |paths: ownership_of_replicas::Paths<'_>| {
            ownership_of_replicas::to_parent(owners, fields, api_version, paths)
        };
        match paths.by_version(merged)? {
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

    fn document(&self, object: &Value) -> Option<Value> {
        Some(scale_of(object, self.of.paths))
    }

    fn owners(&self) -> &Value {
        &self.owners
    }

    fn take_over(&self, scale: &Value, object: &mut Value) {
        object.set_at(&self.of.paths.replicas, scale.int_at(&REPLICAS).unwrap_or(0));
    }
}

/// Returns the Scale of an object, which is in the version of the request.
fn scale_of(parent: &Value, paths: &Paths<'_>) -> Value {
    let mut scale = value!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {}, "spec": {}, "status": {}});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        let member = parent.at(&["metadata", field]);
        if !member.is_null() {
            scale.set_at(&["metadata", field], member.clone());
        }
    }
    if let Some(replicas) = parent.int_at(&paths.replicas).filter(|replicas| *replicas != 0) {
        scale.set_at(&REPLICAS, replicas);
    }
    scale.set_at(&OBSERVED, parent.int_at(&paths.observed).unwrap_or(0));
    if let Some(text) = paths.selector_of(parent).filter(|text| !text.is_empty()) {
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
    use crate::served::Resources;

    #[test]
    fn a_scale_shows_replicas_and_selector() {
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
        let deployments = Resources::builtin().find("apps", "v1", "deployments").unwrap();
        let paths = Paths::of(&deployments);
        assert_eq!(scale_of(&parent, &paths), expected);
        let plain = value!({"metadata": {}, "spec": {"replicas": 0, "selector": {"b": "2", "a": "1"}}});
        let scale = scale_of(&plain, &paths);
        assert_eq!(scale.at(&["spec"]), &Value::object());
        assert_eq!(scale.str_at(&["status", "selector"]), "a=1,b=2");
    }
}
