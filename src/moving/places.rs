//! Where kube-apiserver keeps objects in etcd: `PREFIX/FOLDER/[NAMESPACE/]NAME`.

use std::collections::BTreeMap;
use std::sync::Arc;

use flotilla_cluster::TableId;

use crate::served::{Resources, Served};

/// Resources whose folder is not their plural name: group, plural name, folder
/// (k8s.io/kubernetes 1.36, `SpecialDefaultResourcePrefixes`).
const ELSEWHERE: [(&str, &str, &str); 5] = [
    ("", "replicationcontrollers", "controllers"),
    ("", "endpoints", "services/endpoints"),
    ("", "nodes", "minions"),
    ("", "services", "services/specs"),
    ("networking.k8s.io", "ingresses", "ingress"),
];

/// Groups whose resources have the group in their folder, as those of definitions have. They are those of the servers
/// that kube-apiserver puts before and behind its own, and they keep JSON.
const GROUPED: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// Keys that are no objects of the API, by what they begin with, and why they are left out.
const MADE_ANEW: [(&str, &str); 5] = [
    ("ranges/", "which addresses and ports are taken follows from the services"),
    ("masterleases/", "servers state anew where they are"),
    ("peerserverleases/", "servers state anew where they are"),
    ("storageversions/", "servers state anew what they store"),
    ("health", "it is there to be asked for, and holds nothing"),
];

/// What a key stands for.
#[derive(Debug)]
pub(super) enum Place<'a> {
    /// An object.
    Object {
        /// Its resource, as it is stored here.
        served: &'a Arc<Served>,
        /// Its namespace; empty for a resource without.
        namespace: &'a str,
        /// Its name.
        name: &'a str,
    },
    /// Something that every server makes for itself, and why it is left out.
    MadeAnew(&'static str),
    /// Something else, and why it is none of these.
    Unknown(String),
}

/// Finds what keys stand for.
#[derive(Debug, Default)]
pub(super) struct Places {
    by_folder: BTreeMap<String, Arc<Served>>,
    by_table: BTreeMap<TableId, Arc<Served>>,
}

impl Places {
    /// The places of what is built in.
    pub(super) fn builtin() -> Self {
        let mut places = Self::default();
        Resources::builtin().stored().into_iter().for_each(|served| places.add(served));
        places
    }

    /// Adds a resource, as it is stored.
    pub(super) fn add(&mut self, served: Arc<Served>) {
        self.by_table.entry(served.table.clone()).or_insert_with(|| Arc::clone(&served));
        self.by_folder.entry(folder(&served)).or_insert(served);
    }

    /// The resource that a table has.
    pub(super) fn of_table(&self, table: &TableId) -> Option<&Arc<Served>> {
        self.by_table.get(table)
    }

    /// The resource that a folder has.
    pub(super) fn of_folder(&self, folder: &str) -> Option<&Arc<Served>> {
        self.by_folder.get(folder)
    }

    /// What a key stands for, without the prefix of all keys and the slash behind that.
    pub(super) fn find<'a>(&'a self, key: &'a str) -> Place<'a> {
        if let Some(&(_, why)) = MADE_ANEW.iter().find(|(begin, _)| key.starts_with(begin)) {
            return Place::MadeAnew(why);
        }
        let mut ends = key.match_indices('/').map(|(at, _)| at);
        let (first, second) = (ends.next(), ends.next());
        // A folder of two names comes first: `services` alone is none, and no plural name has the dot of a group.
        let found = [second, first].into_iter().flatten().find_map(|end| Some((self.by_folder.get(&key[..end])?, end)));
        let Some((served, end)) = found else {
            return Place::Unknown("no resource is kept there".to_owned());
        };
        let rest = &key[end + 1..];
        let (namespace, name) = match served.resource.namespaced {
            true => rest.split_once('/').unwrap_or(("", rest)),
            false => ("", rest),
        };
        if name.is_empty() || name.contains('/') || namespace.is_empty() == served.resource.namespaced {
            return Place::Unknown(format!("it names no object of {}", served.table));
        }
        Place::Object { served, namespace, name }
    }
}

/// The folder of a resource that is built in or custom.
pub(super) fn folder(served: &Served) -> String {
    // What is shown in another group than it is stored in is kept where it is stored.
    let (group, plural) = (&*served.stored.group, &*served.resource.name);
    if let Some((_, _, folder)) = ELSEWHERE.iter().find(|(of, name, _)| (*of, *name) == (group, plural)) {
        return (*folder).to_owned();
    }
    match served.custom.is_some() || is_json(served) {
        true => format!("{group}/{plural}"),
        false => plural.to_owned(),
    }
}

/// Whether objects are kept as JSON; they are kept as protobuf otherwise.
pub(super) fn is_json(served: &Served) -> bool {
    served.custom.is_some() || GROUPED.contains(&&*served.stored.group)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(places: &Places, key: &str) -> String {
        match places.find(key) {
            Place::Object { served, namespace, name } => format!("{} {namespace} {name}", served.table),
            Place::MadeAnew(_) => "anew".to_owned(),
            Place::Unknown(_) => "unknown".to_owned(),
        }
    }

    #[test]
    fn keys_lead_to_objects() {
        let places = Places::builtin();
        for (key, expected) in [
            ("configmaps/default/a", "configmaps default a"),
            ("minions/n1", "nodes  n1"),
            ("services/specs/default/kubernetes", "services default kubernetes"),
            ("services/endpoints/default/kubernetes", "endpoints default kubernetes"),
            ("controllers/a/b", "replicationcontrollers a b"),
            ("ingress/a/b", "networking.k8s.io/ingresses a b"),
            ("events/default/a.1", "events default a.1"),
            ("deployments/a/b", "apps/deployments a b"),
            ("clusterroles/system:node", "rbac.authorization.k8s.io/clusterroles  system:node"),
            ("apiregistration.k8s.io/apiservices/v1.", "apiregistration.k8s.io/apiservices  v1."),
            (
                "apiextensions.k8s.io/customresourcedefinitions/a.b",
                "apiextensions.k8s.io/customresourcedefinitions  a.b",
            ),
            ("ranges/serviceips", "anew"),
            ("masterleases/10.0.0.1", "anew"),
            ("nodes/n1", "unknown"),
            ("services/default/a", "unknown"),
            ("configmaps/a", "unknown"),
            ("configmaps/a/", "unknown"),
            ("minions/a/b", "unknown"),
            ("example.com/widgets/a/b", "unknown"),
            ("configmaps", "unknown"),
            ("", "unknown"),
        ] {
            assert_eq!(found(&places, key), expected, "{key}");
        }
    }

    #[test]
    fn no_two_resources_share_a_folder() {
        let stored = Resources::builtin().stored();
        let folders: std::collections::BTreeSet<_> = stored.iter().map(|served| folder(served)).collect();
        assert_eq!(folders.len(), stored.len());
    }
}
