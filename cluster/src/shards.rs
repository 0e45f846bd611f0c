//! Which table is kept in how many shards: seeing and changing it.

use crate::limits::ATTEMPT_INTERVAL;
use crate::replica::mapping;
use crate::shard_map::{DEFAULT_GROUP, Division, group_name};
use crate::store::Store;
use crate::{Expectation, ReadError, ShardMapError, TableId, WriteError};

/// How a table is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableShards {
    /// The table.
    pub table: TableId,
    /// The group of each of its shards.
    pub groups: Vec<String>,
    /// The group of each of the shards that it is being divided into, if it is.
    pub next: Option<Vec<String>>,
}

/// Why a table was not divided into other shards, or it is not known whether it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DivideError {
    /// It cannot have so many.
    #[error(transparent)]
    Shards(#[from] ShardMapError),
    /// The shard map cannot be read up to date.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The shard map cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Store {
    /// How every table is kept that is not in one shard of the group `default`, or was not always, as this replica
    /// knows.
    pub fn shards(&self) -> Vec<TableShards> {
        let groups = |division: &Division| division.slots.iter().map(|slot| group_name(*slot).to_string()).collect();
        let map = self.registry().map();
        let shown = map.tables.iter().map(|(table, placement)| TableShards {
            table: table.clone(),
            groups: groups(&placement.serving),
            next: placement.next.as_ref().map(groups),
        });
        shown.collect()
    }

    /// Divides a table into so many shards while it is used, and waits until that is done. What is read of it and who
    /// watches it go on; writers wait for some milliseconds in the end. It goes on when nobody waits for it any more,
    /// also when this replica stops. Safe to repeat.
    ///
    /// # Errors
    /// See [`DivideError`].
    pub async fn divide(&self, table: &TableId, shards: u16) -> Result<(), DivideError> {
        let registry = self.registry().clone();
        let mut maps = registry.maps();
        loop {
            self.learn().await?;
            let (map, at) = maps.borrow_and_update().clone();
            let placement = map.tables.get(table);
            if placement.is_some_and(|placement| placement.next.is_some()) {
                let _ = maps.changed().await; // a store that is shut down has no more maps
                continue;
            }
            let groups = &self.running().groups;
            let default = groups.get(DEFAULT_GROUP).ok_or(ReadError::Unavailable)?;
            // The map is another one once they have changed: see `Store::data_groups`.
            let founders = default.leader.node().members_in_log().await.ok_or(ReadError::Closed)?;
            let founders = mapping::with_vote(founders);
            let Some(next) = map.dividing(table, shards, &founders)? else { return Ok(()) };
            match mapping::write(&registry, groups, Expectation::Revision(at), &next).await {
                Ok(_) => {}
                Err(error) if error.is_definite() => return Err(error.into()),
                Err(_) => tokio::time::sleep(ATTEMPT_INTERVAL).await,
            }
        }
    }
}
