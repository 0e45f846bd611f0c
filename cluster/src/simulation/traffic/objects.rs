//! The objects of the clients: their keys and their content.

use super::super::draw;
use super::super::history::{Key, Seen, Table};
use crate::{Draft, Layout, Object, Revision, TableId};

/// The namespaces of objects.
pub(super) const NAMESPACES: [&str; 2] = ["x", "y"];
/// The largest number of objects in each namespace of a table.
const NAMES: u64 = 4;

/// Draws a key of a table.
pub(super) fn any_key(table: Table) -> Key {
    let namespace = (*draw::one_of(&NAMESPACES)).to_owned();
    Key { table, namespace, name: format!("o{}", draw::below(NAMES)) }
}

/// Returns the same key in the form of the store.
pub(super) fn store_key(key: &Key) -> crate::Key {
    crate::Key::namespaced(&key.namespace, &key.name)
}

pub(super) fn store_table(table: Table) -> TableId {
    TableId::new(table.name)
}

/// Returns an object with a uid and a value.
pub(super) fn draft(uid: &str, value: &str) -> Draft {
    let mut bytes = vec![b'0'; Revision::DIGITS];
    bytes.extend_from_slice(format!(" {uid} {value}").as_bytes());
    Draft { bytes, layout: Layout::default(), ..Draft::default() }
}

/// Returns the key and the content of an object.
pub(super) fn read(table: Table, object: &Object) -> (Key, Seen) {
    let key = object.key();
    let key = Key { table, namespace: key.namespace().unwrap_or_default().into(), name: key.name().into() };
    let bytes = String::from_utf8_lossy(object.bytes());
    let mut words = bytes.split(' ').skip(1).map(str::to_owned);
    let (uid, value) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    (key, Seen { revision: object.revision().get(), uid, value })
}
