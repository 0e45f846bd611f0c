//! Finds the objects in the store that concern a node.

use std::fmt;
use std::sync::Arc;

use flotilla_cluster::{Key, Object, Scope, Selection, Store, Table, TableId};
use flotilla_proto::value::Value;
use memchr::memmem;

use super::references;
use crate::scan::scan;
use crate::unreadable::{skip_unreadable, value};

/// The indexed field of pods that names their node.
const NODE_NAME: &str = "spec.nodeName";

/// Kinds of relations between an object and a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Related {
    /// A ConfigMap that a pod uses.
    ConfigMap,
    /// A Secret that a pod uses, or that a volume of one of the pod's claims uses.
    Secret,
    /// A PersistentVolumeClaim of a pod.
    Claim,
    /// A PersistentVolume that is bound to a claim of a pod.
    Volume,
    /// A ResourceClaim of a pod.
    ResourceClaim,
    /// A VolumeAttachment of the node.
    Attachment,
    /// The ServiceAccount of a pod.
    Account,
    /// A ResourceSlice of the node.
    Slice,
    /// A pod on the node.
    Pod,
}

/// The relations of objects to nodes.
pub trait Relations: Send + Sync {
    /// Returns whether an object concerns a node.
    fn has(&self, node: &str, what: Related, namespace: &str, name: &str) -> bool;
}

/// Looks relations up in the store for each question. Finds pods by the index that kubelets need anyway, and parses
/// only pods whose text contains the name.
pub struct StoreRelations {
    pods: Arc<Table>,
    claims: Arc<Table>,
    volumes: Arc<Table>,
    attachments: Arc<Table>,
    slices: Arc<Table>,
}

impl fmt::Debug for StoreRelations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreRelations").finish_non_exhaustive()
    }
}

impl StoreRelations {
    /// Creates relations that read this store.
    pub fn new(store: &Store) -> Self {
        let table = |name| store.table(&TableId::new(name));
        Self {
            pods: table("pods"),
            claims: table("persistentvolumeclaims"),
            volumes: table("persistentvolumes"),
            attachments: table("storage.k8s.io/volumeattachments"),
            slices: table("resource.k8s.io/resourceslices"),
        }
    }

    /// Returns whether `holds` is true for a pod on a node. Parses only pods whose text contains one of `texts`.
    fn any_pod(&self, node: &str, scope: Scope, texts: &[&[u8]], holds: impl Fn(&Value) -> bool) -> bool {
        let selection = Selection { scope, field: Some((NODE_NAME.into(), node.into())), ..Selection::default() };
        // If the snapshot becomes older than the history window, the answer is unknown and the request is refused.
        let pods = scan(&self.pods.snapshot(), selection).map_while(Result::ok).flatten();
        let mentions = |pod: &Arc<Object>| texts.iter().any(|text| memmem::find(pod.bytes(), text).is_some());
        pods.filter(mentions).filter_map(|pod| tree(&pod)).any(|pod| holds(&pod))
    }

    fn used(&self, node: &str, what: Related, namespace: &str, name: &str) -> bool {
        // Names contain nothing that JSON escapes. The name of an ephemeral volume's claim does not occur in the pod.
        let quoted = format!("\"{name}\"");
        let texts: &[&[u8]] =
            if what == Related::Claim { &[quoted.as_bytes(), b"\"ephemeral\""] } else { &[quoted.as_bytes()] };
        self.any_pod(node, Scope::namespace(namespace), texts, |pod| references::uses(pod, what, name))
    }

    fn volume(&self, node: &str, name: &str) -> bool {
        let Some(volume) = self.volumes.get(name).and_then(|volume| tree(&volume)) else { return false };
        let claim = |field| volume.str_at(&["spec", "claimRef", field]);
        !claim("name").is_empty() && self.used(node, Related::Claim, claim("namespace"), claim("name"))
    }

    /// Returns whether a volume that is bound to a claim of one of the node's pods uses a Secret.
    fn used_by_volume(&self, node: &str, namespace: &str, name: &str) -> bool {
        let texts: [&[u8]; 2] = [b"\"persistentVolumeClaim\"", b"\"ephemeral\""];
        self.any_pod(node, Scope::All, &texts, |pod| {
            let own = pod.str_at(&["metadata", "namespace"]);
            references::claims(pod).iter().any(|claim| {
                let claim = self.claims.get(Key::namespaced(own, claim).as_str()).and_then(|claim| tree(&claim));
                let volume = claim.and_then(|claim| self.volumes.get(claim.str_at(&["spec", "volumeName"])));
                volume.and_then(|volume| tree(&volume)).is_some_and(|volume| {
                    volume.str_at(&["spec", "claimRef", "namespace"]) == own
                        && references::volume_uses(&volume, namespace, name)
                })
            })
        })
    }
}

impl Relations for StoreRelations {
    fn has(&self, node: &str, what: Related, namespace: &str, name: &str) -> bool {
        let on_node = |object: Option<Arc<Object>>| {
            object.and_then(|object| tree(&object)).is_some_and(|object| object.str_at(&["spec", "nodeName"]) == node)
        };
        match what {
            Related::Attachment => on_node(self.attachments.get(name)),
            Related::Slice => on_node(self.slices.get(name)),
            Related::Pod => self
                .pods
                .get(Key::namespaced(namespace, name).as_str())
                .is_some_and(|pod| pod.terms().field(NODE_NAME) == Some(node)),
            Related::Volume => self.volume(node, name),
            Related::Secret => self.used(node, what, namespace, name) || self.used_by_volume(node, namespace, name),
            Related::ConfigMap | Related::Claim | Related::ResourceClaim | Related::Account => {
                self.used(node, what, namespace, name)
            }
        }
    }
}

fn tree(object: &Object) -> Option<Value> {
    skip_unreadable(value(object))
}
