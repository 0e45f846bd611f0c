//! Lists the resources that clients can reach, and says where each is stored.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use flotilla_cluster::{Key, Object, TableId};
use flotilla_proto::schema::{Column, Kind, Ref, Resource, Subresource, Text, Type};
use flotilla_proto::value::Value;
use flotilla_proto::{catalogue, conform};

use tokio::sync::watch;

use crate::catalogued;
use crate::custom::{self, Custom, Definition};
use crate::enablement::Enablement;
use crate::kinds;
use crate::printing::{CUSTOM_SCALE_COLUMNS, SCALE_COLUMNS};
use crate::rules::Strategy;
use crate::rules::plugins::Concerned;
use crate::status::ApiError;

/// A resource in one version, as clients reach it.
#[derive(Debug, Clone)]
pub struct Served {
    /// The resource as this version serves it.
    pub resource: Ref<Resource>,
    /// The kind in which its objects are stored, which another version may serve.
    pub stored: Ref<Kind>,
    /// The rules of the kind.
    pub strategy: &'static Strategy,
    /// The table that holds the objects.
    pub table: TableId,
    /// Subresources with a kind of their own: their name, and the resource as the subresource shows it.
    pub parts: Vec<(Text, Arc<Served>)>,
    /// The definition of a custom resource. Built-in resources have `None`.
    pub custom: Option<Custom>,
    /// Whether clients cannot reach it, because it is switched off. The server itself still uses its objects.
    pub off: bool,
    /// The admission plugins that concern it, found at the first write.
    pub plugins: OnceLock<Concerned>,
}

impl Served {
    /// Returns the group, empty for the core group.
    pub fn group(&self) -> &str {
        &self.resource.group
    }

    /// Returns the kind of this version.
    pub fn kind(&self) -> &Kind {
        &self.resource.kind
    }

    /// Returns the type of the objects of this version.
    pub fn of(&self) -> &Type {
        &self.resource.kind.of
    }

    /// Returns the `apiVersion` of the objects of this version.
    pub fn api_version(&self) -> String {
        self.resource.kind.api_version()
    }

    /// Returns the resource as a subresource with a kind of its own shows it. Returns `None` for other subresources.
    pub fn part(&self, subresource: &str) -> Option<&Arc<Served>> {
        self.parts.iter().find(|(name, _)| name == subresource).map(|(_, part)| part)
    }

    /// Returns whether this is the version in which objects are stored, so that clients get the stored bytes.
    /// Returns false for custom resources: their definition may change, so each object must be checked.
    pub fn is_stored_version(&self) -> bool {
        self.custom.is_none() && self.is_of_stored_version()
    }

    /// Returns whether this version shows the stored bytes of an object unchanged.
    pub fn shows_as_stored(&self, object: &Object) -> bool {
        self.custom.as_ref().map_or_else(|| self.is_of_stored_version(), |custom| custom.shows_as_stored(object))
    }

    fn is_of_stored_version(&self) -> bool {
        self.stored.version == self.resource.kind.version && self.stored.group == self.resource.kind.group
    }

    /// Returns whether documents that name each resource once describe it in this version: the stored one, or the first
    /// served one if the stored one is not served.
    fn is_first(&self) -> bool {
        self.custom.as_ref().map_or_else(|| self.is_of_stored_version(), Custom::is_first)
    }

    /// Returns whether discovery lists this verb.
    pub fn has_verb(&self, verb: &str) -> bool {
        self.resource.verbs.iter().any(|v| v == verb)
    }

    /// Conforms an object of this version that was made from `before`, which conforms or is null. Returns the paths of
    /// fields that were dropped.
    ///
    /// # Errors
    /// A value is not of its type.
    pub fn conform(&self, object: &mut Value, before: &Value) -> Result<Vec<String>, conform::Error> {
        match &self.custom {
            Some(custom) => custom.conform(object),
            None => conform::conform_changed(self.of(), object, before),
        }
    }

    /// Returns the key of an object.
    pub fn key(&self, namespace: &str, name: &str) -> Key {
        if self.resource.namespaced { Key::namespaced(namespace, name) } else { Key::new(name) }
    }

    /// Returns 404 for an object of this resource.
    pub fn not_found(&self, name: &str) -> ApiError {
        ApiError::not_found(self.group(), &self.resource.name, name)
    }
}

/// All served resources, by group, version and plural name. The set is replaced as a whole when it changes.
#[derive(Debug)]
pub struct Resources {
    builtin: Vec<Arc<Served>>,
    known: ArcSwap<KnownResources>,
    /// How often the set of definitions was replaced.
    defined: watch::Sender<u64>,
}

#[derive(Debug)]
struct KnownResources {
    /// Every resource in every version, also in those that are off, by group, version and plural name.
    sorted: Arc<Vec<Arc<Served>>>,
    /// Every resource once, by group and plural name: in its stored version, or in its first served version if the
    /// stored one is not served.
    stored: Vec<Arc<Served>>,
    /// The versions of a table, for each table that has several, also those that are off. They may be of different
    /// groups.
    several: HashMap<TableId, Arc<[Arc<Served>]>>,
}

impl KnownResources {
    fn of(mut all: Vec<Arc<Served>>) -> Self {
        all.sort_by(|a, b| order(a).cmp(&order(b)));
        let mut stored: Vec<_> = all.iter().filter(|of| of.is_first()).cloned().collect();
        stored.sort_by(|a, b| stored_order(a).cmp(&stored_order(b)));
        let mut versions: HashMap<&TableId, Vec<Arc<Served>>> = HashMap::new();
        all.iter().for_each(|of| versions.entry(&of.table).or_default().push(Arc::clone(of)));
        let several = versions.into_iter().filter(|(_, versions)| versions.len() > 1);
        let several = several.map(|(table, versions)| (table.clone(), versions.into())).collect();
        Self { sorted: Arc::new(all), stored, several }
    }
}

impl Resources {
    /// Returns the built-in resources.
    pub fn builtin() -> Self {
        Self::enabled(&Enablement::default())
    }

    /// Returns the built-in resources. Clients can reach those that are switched on.
    pub fn enabled(enablement: &Enablement) -> Self {
        let on = |of: &Resource| enablement.serves(&of.group, &of.version, &of.name);
        let served = |resource: &'static Resource| Arc::new(Served { off: !on(resource), ..served(resource) });
        let all = catalogue::resources().filter(|resource| !resource.verbs.is_empty()).map(served);
        let builtin: Vec<_> = all.collect();
        let known = ArcSwap::from_pointee(KnownResources::of(builtin.clone()));
        Self { builtin, known, defined: watch::Sender::new(0) }
    }

    /// Replaces the custom resources by those of these definitions. Returns the new ones. Built-in resources do not
    /// change.
    pub fn define<'a>(&self, definitions: impl Iterator<Item = &'a Arc<Definition>>) -> Vec<Arc<Served>> {
        let custom = definitions.filter(|definition| !self.has_built_in(definition)).flat_map(Custom::of);
        let custom: Vec<_> = custom.map(|custom| Arc::new(defined(custom))).collect();
        self.known.store(Arc::new(KnownResources::of(self.builtin.iter().chain(&custom).cloned().collect())));
        self.defined.send_modify(|times| *times += 1);
        custom
    }

    fn has_built_in(&self, definition: &Definition) -> bool {
        self.builtin.iter().any(|own| stored_order(own) == (&definition.group, &definition.plural))
    }

    /// Returns the resource of a definition in its stored version, whether or not that is served. `None` if it has the
    /// name of a built-in resource, whose objects belong to no definition.
    pub fn defined_by(&self, definition: Definition) -> Option<Arc<Served>> {
        let is_own = !self.has_built_in(&definition);
        is_own.then(|| Arc::new(defined(Custom::stored(&Arc::new(definition)))))
    }

    /// Returns a receiver that is notified whenever definitions are replaced. Its value counts the replacements.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.defined.subscribe()
    }

    /// Returns the resource with this group, version and plural name. Returns `None` if clients cannot reach it.
    pub fn find(&self, group: &str, version: &str, name: &str) -> Option<Arc<Served>> {
        let known = self.known.load();
        let at = known.sorted.binary_search_by(|of| order(of).cmp(&(group, version, name))).ok()?;
        Some(&known.sorted[at]).filter(|served| !served.off).cloned()
    }

    /// Returns the resource whose objects have this kind in this version. Returns `None` if clients cannot reach it.
    pub fn with_kind(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Served>> {
        let is_it = |of: &&Arc<Served>| {
            let own = of.kind();
            !of.off && (&*own.group, &*own.version, &*own.name) == (group, version, kind)
        };
        self.known.load().sorted.iter().find(is_it).cloned()
    }

    /// Returns whether clients can reach any resource of a built-in group.
    pub fn has_group(&self, group: &str) -> bool {
        self.builtin.iter().any(|of| of.group() == group && !of.off)
    }

    /// Returns every resource in every version, also in those that are off.
    pub fn all(&self) -> Arc<Vec<Arc<Served>>> {
        self.known.load().sorted.clone()
    }

    /// Returns the versions of a table, by group and version, also those that are off. Returns `None` if there is only
    /// one.
    pub fn versions(&self, table: &TableId) -> Option<Arc<[Arc<Served>]>> {
        self.known.load().several.get(table).cloned()
    }

    /// Returns every resource once: in its stored version, or in its first served version if the stored one is not
    /// served.
    pub fn stored(&self) -> Vec<Arc<Served>> {
        self.known.load().sorted.iter().filter(|of| of.is_first()).cloned().collect()
    }

    /// Returns the resource with this kind, in the version that [`Self::stored`] returns. Returns `None` if there is
    /// none.
    pub fn of_kind(&self, group: &str, kind: &str) -> Option<Arc<Served>> {
        let known = self.known.load();
        known.stored.iter().find(|of| of.group() == group && of.kind().name == kind).cloned()
    }

    /// Returns the resource with this group and plural name, in the version that [`Self::stored`] returns. Returns
    /// `None` if there is none.
    pub fn of_resource(&self, group: &str, name: &str) -> Option<Arc<Served>> {
        let known = self.known.load();
        let at = known.stored.binary_search_by(|of| stored_order(of).cmp(&(group, name))).ok()?;
        Some(known.stored[at].clone())
    }
}

fn order(of: &Served) -> (&str, &str, &str) {
    (&of.resource.group, &of.resource.version, &of.resource.name)
}

fn stored_order(of: &Served) -> (&str, &str) {
    (&of.resource.group, &of.resource.name)
}

fn served(resource: &'static Resource) -> Served {
    let stored = catalogued::stored_kind(resource);
    let table = if stored.group.is_empty() {
        TableId::new(&resource.name)
    } else {
        TableId::new(&format!("{}/{}", stored.group, resource.name))
    };
    let strategy = kinds::strategy(&resource.group, &resource.name);
    let parts = resource.subresources.iter();
    let parts = parts
        .filter_map(|sub| Some((sub.name.clone(), Arc::new(part(resource, sub, &table, SCALE_COLUMNS)?))))
        .collect();
    Served {
        resource: Ref::Static(resource),
        stored,
        strategy,
        table,
        parts,
        custom: None,
        off: false,
        plugins: OnceLock::new(),
    }
}

/// Returns a version of a custom resource as it is served.
fn defined(custom: Custom) -> Served {
    let (definition, version) = (custom.definition(), custom.version());
    let table = TableId::new(&format!("{}/{}", definition.group, definition.plural));
    let resource = custom::resource(definition, version);
    let parts = resource.subresources.iter();
    let parts = parts
        .filter_map(|sub| Some((sub.name.clone(), Arc::new(part(&resource, sub, &table, CUSTOM_SCALE_COLUMNS)?))))
        .collect();
    Served {
        stored: custom.stored_kind().clone(),
        strategy: if version.status { &custom::WITH_STATUS } else { &custom::PLAIN },
        resource: Ref::Shared(Arc::new(resource)),
        table,
        parts,
        custom: Some(custom),
        off: false,
        plugins: OnceLock::new(),
    }
}

/// Returns a resource as a subresource shows it, with `scale` as the columns of a Scale. `None` if the subresource has
/// the resource's own kind.
fn part(resource: &Resource, subresource: &Subresource, table: &TableId, scale: &'static [Column]) -> Option<Served> {
    let (group, version, kind) = &subresource.response_kind;
    let kind = catalogue::kind(group, version, kind)?;
    if kind.name == resource.kind.name && kind.group == resource.kind.group {
        return None;
    }
    let columns = if kind.name == "Scale" { Cow::Borrowed(scale) } else { Cow::default() };
    Some(Served {
        resource: Ref::Shared(Arc::new(Resource { kind: Ref::Static(kind), columns, ..resource.clone() })),
        stored: Ref::Static(kind),
        strategy: kinds::strategy(&kind.group, &subresource.name),
        table: table.clone(),
        parts: Vec::new(),
        custom: None,
        off: false,
        plugins: OnceLock::new(),
    })
}

#[cfg(test)]
#[path = "served_tests.rs"]
mod tests;
