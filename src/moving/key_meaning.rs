//! Maps objects to their keys in etcd, and back: `PREFIX/FOLDER/[NAMESPACE/]NAME`.

use std::collections::BTreeMap;
use std::sync::Arc;

use flotilla_cluster::TableId;

use crate::served::{Resources, Served};

/// Resources whose folder is not their plural name: group, plural name, folder (k8s.io/kubernetes 1.36,
/// `SpecialDefaultResourcePrefixes`).
const ELSEWHERE: [(&str, &str, &str); 5] = [
    ("", "replicationcontrollers", "controllers"),
    ("", "endpoints", "services/endpoints"),
    ("", "nodes", "minions"),
    ("", "services", "services/specs"),
    ("networking.k8s.io", "ingresses", "ingress"),
];

/// Groups of built-in resources whose folders begin with the group and whose objects are JSON, as for custom resources.
/// They belong to the other servers that kube-apiserver contains.
const GROUPED: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// Prefixes of keys that are not API objects, and why those are left out.
const MADE_ANEW: [(&str, &str); 5] = [
    ("ranges/", "the services determine which addresses and ports are taken"),
    ("masterleases/", "each server writes its own address again"),
    ("peerserverleases/", "each server writes its own address again"),
    ("storageversions/", "each server writes its own storage versions again"),
    ("health", "the key serves health checks and holds no data"),
];

/// The meaning of a key.
#[derive(Debug)]
pub(super) enum KeyMeaning<'a> {
    /// An object.
    Object {
        /// Its resource, in the stored version.
        served: &'a Arc<Served>,
        /// Its namespace. Empty for a cluster-scoped resource.
        namespace: &'a str,
        /// Its name.
        name: &'a str,
    },
    /// Data that every server writes by itself, and why it is left out.
    MadeAnew(&'static str),
    /// Anything else, and why it is not an object.
    Unknown(String),
}

/// Finds the meaning of keys.
#[derive(Debug, Default)]
pub(super) struct KeyMeanings {
    by_folder: BTreeMap<String, Arc<Served>>,
    by_table: BTreeMap<TableId, Arc<Served>>,
}

impl KeyMeanings {
    /// Returns the meanings of the keys of the built-in resources.
    pub(super) fn builtin() -> Self {
        let mut meanings = Self::default();
        Resources::builtin().stored().into_iter().for_each(|served| meanings.add(served));
        meanings
    }

    /// Adds a resource in its stored version.
    pub(super) fn add(&mut self, served: Arc<Served>) {
        self.by_table.entry(served.table.clone()).or_insert_with(|| Arc::clone(&served));
        self.by_folder.entry(folder(&served)).or_insert(served);
    }

    /// Returns the resource of a table.
    pub(super) fn of_table(&self, table: &TableId) -> Option<&Arc<Served>> {
        self.by_table.get(table)
    }

    /// Returns the resource of a folder.
    pub(super) fn of_folder(&self, folder: &str) -> Option<&Arc<Served>> {
        self.by_folder.get(folder)
    }

    /// Returns the meaning of a key, given without the prefix of all keys and its slash.
    pub(super) fn find<'a>(&'a self, key: &'a str) -> KeyMeaning<'a> {
        if let Some(&(_, why)) = MADE_ANEW.iter().find(|(begin, _)| key.starts_with(begin)) {
            return KeyMeaning::MadeAnew(why);
        }
        let mut ends = key.match_indices('/').map(|(at, _)| at);
        let (first, second) = (ends.next(), ends.next());
        // Folders of two names are tried first: `services` alone is not a folder, and plural names have no dot, unlike
        // groups.
        let found = [second, first].into_iter().flatten().find_map(|end| Some((self.by_folder.get(&key[..end])?, end)));
        let Some((served, end)) = found else {
            return KeyMeaning::Unknown("no resource has this folder".to_owned());
        };
        let rest = &key[end + 1..];
        let (namespace, name) = match served.resource.namespaced {
            true => rest.split_once('/').unwrap_or(("", rest)),
            false => ("", rest),
        };
        if name.is_empty() || name.contains('/') || namespace.is_empty() == served.resource.namespaced {
            return KeyMeaning::Unknown(format!("it names no object of {}", served.table));
        }
        KeyMeaning::Object { served, namespace, name }
    }
}

/// Returns the folder of a resource.
pub(super) fn folder(served: &Served) -> String {
    // A resource that is served in another group has the folder of the group in which it is stored.
    let (group, plural) = (&*served.stored.group, &*served.resource.name);
    if let Some((_, _, folder)) = ELSEWHERE.iter().find(|(of, name, _)| (*of, *name) == (group, plural)) {
        return (*folder).to_owned();
    }
    match served.custom.is_some() || is_json(served) {
        true => format!("{group}/{plural}"),
        false => plural.to_owned(),
    }
}

/// Returns whether objects are stored as JSON. Other objects are stored as protobuf.
pub(super) fn is_json(served: &Served) -> bool {
    served.custom.is_some() || GROUPED.contains(&&*served.stored.group)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(meanings: &KeyMeanings, key: &str) -> String {
        match meanings.find(key) {
            KeyMeaning::Object { served, namespace, name } => format!("{} {namespace} {name}", served.table),
            KeyMeaning::MadeAnew(_) => "anew".to_owned(),
            KeyMeaning::Unknown(_) => "unknown".to_owned(),
        }
    }

    #[test]
    fn keys_are_mapped_to_objects() {
        let meanings = KeyMeanings::builtin();
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
            assert_eq!(found(&meanings, key), expected, "{key}");
        }
    }

    #[test]
    fn no_two_resources_share_a_folder() {
        let stored = Resources::builtin().stored();
        let folders: std::collections::BTreeSet<_> = stored.iter().map(|served| folder(served)).collect();
        assert_eq!(folders.len(), stored.len());
    }
}
