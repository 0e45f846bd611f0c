//! The shards of tables: showing and changing their number.

use crate::limits::ATTEMPT_INTERVAL;
use crate::replica::sharding::mapping;
use crate::shard_map::{DEFAULT_GROUP, Division, group_name};
use crate::store::Store;
use crate::{Expectation, ReadError, ShardMapError, TableId, WriteError};

/// The division of a table into shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableShards {
    /// The table.
    pub table: TableId,
    /// The group of each of its shards.
    pub groups: Vec<String>,
    /// The group of each shard of the next division; `None` when the table is not being divided.
    pub next: Option<Vec<String>>,
}

/// The reason why a table was not divided, or why it is not known whether it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DivideError {
    /// The table cannot have this number of shards.
    #[error(transparent)]
    Shards(#[from] ShardMapError),
    /// The newest shard map cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The shard map cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Store {
    /// Returns the division of every table that is not, or was not always, one shard in the group `default`, as this
    /// replica knows it.
    pub fn shards(&self) -> Vec<TableShards> {
        let groups = |division: &Division| {
            division.group_numbers.iter().map(|group_number| group_name(*group_number).to_string()).collect()
        };
        let map = self.registry().map();
        let shown = map.tables.iter().map(|(table, placement)| TableShards {
            table: table.clone(),
            groups: groups(&placement.serving),
            next: placement.next.as_ref().map(groups),
        });
        shown.collect()
    }

    /// Divides a table into `shards` shards while it is in use, and waits until that is done. Reads and watches go on;
    /// writers wait for some milliseconds at the end. The work goes on when the caller stops waiting, and also when
    /// this replica stops. Safe to repeat.
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
                let _ = maps.changed().await; // cannot fail: `registry` has the sender
                continue;
            }
            let groups = &self.running().groups;
            let default = groups.get(DEFAULT_GROUP).ok_or(ReadError::Unavailable)?;
            // If the members change after this, so does the map, and the write below conflicts: see
            // `Store::data_groups`.
            let founders = default.leader_client.node().roster().members_in_log().await.ok_or(ReadError::Closed)?;
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
