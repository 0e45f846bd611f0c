//! Reads the objects that tokens are bound to from the store.

use std::sync::Arc;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flotilla_cluster::{Key, Object, Store, Table, TableId};
use flotilla_proto::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::bound::{BoundKind, BoundObjects, BoundProperties};
use super::legacy::{INVALID_SINCE, LAST_USED};
use crate::unreadable;

/// The tables of objects that tokens are bound to.
pub struct StoreObjects {
    service_accounts: Arc<Table>,
    pods: Arc<Table>,
    secrets: Arc<Table>,
    nodes: Arc<Table>,
}

impl StoreObjects {
    /// Creates a reader of this store.
    pub fn new(store: &Store) -> Self {
        let table = |name| store.table(&TableId::new(name));
        Self {
            service_accounts: table("serviceaccounts"),
            pods: table("pods"),
            secrets: table("secrets"),
            nodes: table("nodes"),
        }
    }

    fn object(&self, kind: BoundKind, namespace: &str, name: &str) -> Option<Arc<Object>> {
        let table = match kind {
            BoundKind::ServiceAccount => &self.service_accounts,
            BoundKind::Pod => &self.pods,
            BoundKind::Secret => &self.secrets,
            BoundKind::Node => &self.nodes,
        };
        match kind {
            BoundKind::Node => table.get(name),
            _ => table.get(Key::namespaced(namespace, name).as_str()),
        }
    }
}

impl std::fmt::Debug for StoreObjects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoreObjects")
    }
}

impl BoundObjects for StoreObjects {
    fn revision(&self, kind: BoundKind, namespace: &str, name: &str) -> Option<u64> {
        self.object(kind, namespace, name).map(|object| object.revision().get())
    }

    fn find(&self, kind: BoundKind, namespace: &str, name: &str) -> Option<BoundProperties> {
        let object = self.object(kind, namespace, name)?;
        unreadable::prove(&object).ok()?;
        read(&object.bytes()[..], object.revision().get())
    }
}

/// Returns the properties of a stored object that verification needs. `None` if the object cannot be decoded.
fn read(bytes: &[u8], revision: u64) -> Option<BoundProperties> {
    let value = json::parse(bytes).ok()?;
    let time = |text: &str| OffsetDateTime::parse(text, &Rfc3339).ok().map(SystemTime::from);
    let label = |name| value.str_at(&["metadata", "labels", name]).into();
    Some(BoundProperties {
        revision,
        uid: value.str_at(&["metadata", "uid"]).into(),
        deleted_at: time(value.str_at(&["metadata", "deletionTimestamp"])),
        service_account: value.str_at(&["spec", "serviceAccountName"]).into(),
        node: value.str_at(&["spec", "nodeName"]).into(),
        secrets: value.list_at(&["secrets"]).iter().map(|secret| secret.str_at(&["name"]).into()).collect(),
        last_used: label(LAST_USED),
        invalid_since: label(INVALID_SINCE),
        token: value.at(&["data", "token"]).as_str().and_then(|text| STANDARD.decode(text).ok()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_properties_that_verification_needs_are_read() {
        let pod = br#"{"metadata":{"uid":"u","deletionTimestamp":"1970-01-01T00:01:00Z"},
            "spec":{"serviceAccountName":"a","nodeName":"n"},"data":{"token":"YWI="}}"#;
        let found = read(pod, 7).unwrap();
        assert_eq!((found.revision, found.uid.as_str(), found.node.as_str()), (7, "u", "n"));
        assert_eq!(found.deleted_at, Some(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(60)));
        assert_eq!((found.service_account.as_str(), found.token.as_deref()), ("a", Some(&b"ab"[..])));
        assert_eq!(read(b"nonsense", 1), None);
    }
}
