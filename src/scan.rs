//! Reads all selected objects of a table, chunk by chunk.

use std::fmt;
use std::sync::Arc;

use flotilla_cluster::{Compacted, Cursor, Object, Selection, Snapshot};

use crate::limits::LIST_CHUNK_OBJECTS;

/// Begins to read the selected objects of a snapshot, in the order of their keys.
///
/// All chunks are of the snapshot's revision: they do not show writes that happen while they are read. A caller that
/// changes an object of a chunk reads its present state first.
pub fn scan(snapshot: &Snapshot, selection: Selection) -> Chunks {
    Chunks { rest: Some(snapshot.cursor(selection, None)), has_begun: false }
}

/// The selected objects of a snapshot, in chunks of at most [`LIST_CHUNK_OBJECTS`] objects. Each chunk is read under
/// one lock, and may be empty.
///
/// # Errors
/// A chunk is [`Compacted`] when the history of the table no longer contains the revision of the snapshot. No chunk
/// follows it.
pub struct Chunks {
    /// The position of the next chunk. `None` after the last one.
    rest: Option<Cursor>,
    has_begun: bool,
}

impl Chunks {
    /// Does the same as [`Iterator::next`], but lets other tasks run between two chunks.
    pub async fn next_yielding(&mut self) -> Option<Result<Vec<Arc<Object>>, Compacted>> {
        if self.has_begun && self.rest.is_some() {
            tokio::task::yield_now().await;
        }
        self.next()
    }
}

impl Iterator for Chunks {
    type Item = Result<Vec<Arc<Object>>, Compacted>;

    fn next(&mut self) -> Option<Self::Item> {
        let cursor = self.rest.as_mut()?;
        self.has_begun = true;
        let mut objects = Vec::new();
        let more = cursor.read(LIST_CHUNK_OBJECTS, &mut objects);
        if !matches!(more, Ok(true)) {
            self.rest = None;
        }
        Some(more.map(|_| objects))
    }
}

impl fmt::Debug for Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunks").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use flotilla_cluster::{Draft, Expectation, Key, Layout, Mutation, Options, Store, TableId, Terms, Write};

    use super::*;
    use crate::scratch::Scratch;

    async fn write(store: &Store, name: &str) {
        let bytes = br#"{"rv":"000000000000000000"}"#.to_vec();
        let layout = Layout { revision_at: 7, ..Layout::default() };
        let draft = Draft { bytes, layout, terms: Terms::default(), is_decodable: true };
        let (table, key) = (TableId::new("things"), Key::new(name));
        let write = Write { table, key, expectation: Expectation::Absent, mutation: Mutation::Put(draft) };
        store.write(write).await.unwrap();
    }

    #[actix_web::test]
    async fn chunks_are_of_one_revision() {
        let dir = Scratch::new();
        let store = Store::open(Options::new(dir.join("store"))).await.unwrap();
        let names: Vec<String> = (0..2 * LIST_CHUNK_OBJECTS + 1).map(|number| format!("{number:05}")).collect();
        for name in &names {
            write(&store, name).await;
        }
        let table = store.table(&TableId::new("things"));
        let mut chunks = scan(&table.snapshot(), Selection::default());
        let mut found = Vec::new();
        while let Some(objects) = chunks.next_yielding().await {
            let objects = objects.unwrap();
            assert!(objects.len() <= LIST_CHUNK_OBJECTS);
            found.extend(objects.iter().map(|object| object.key().name().to_owned()));
            write(&store, &format!("{}-later", found.len())).await;
        }
        assert_eq!(found, names);
        assert!(chunks.next().is_none());
        store.shutdown().await;
    }
}
