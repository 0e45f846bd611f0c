//! Preferred leaders of groups: changing them in the shard map.

use tokio::time::Instant;

use crate::limits::{ATTEMPT_INTERVAL, ATTEMPTS_TIMEOUT};
use crate::replica::sharding::mapping;
use crate::shard_map::{DEFAULT_GROUP, GroupNumber, ShardMap, number_of_group};
use crate::store::Store;
use crate::{Expectation, MembersError, Outcome, ReadError, Revision};

impl Store {
    /// Prefers a member as the leader of a group, or of all groups that exist now, and transfers leadership to it at
    /// once. The preference lasts until it is changed, the member is removed, or the cluster is restored from a backup;
    /// a member that replaces this one inherits it. Safe to repeat.
    ///
    /// # Errors
    /// See [`MembersError`]; [`MembersError::Deferred`] when the preference is stored, but the member does not lead
    /// yet.
    pub async fn prefer(&self, group: Option<&str>, name: &str) -> Result<(), MembersError> {
        let member = self.member(name).await?;
        self.prefer_in(group, Some(member)).await?;
        let deferred = |error| MembersError::Deferred { name: name.to_owned(), error: Box::new(error) };
        self.transfer(group, name).await.map_err(deferred)
    }

    /// Removes the preference of a group, or of all groups: their leaders stay until leaders are spread evenly. Safe to
    /// repeat.
    ///
    /// # Errors
    /// See [`MembersError`].
    pub async fn prefer_nobody(&self, group: Option<&str>) -> Result<(), MembersError> {
        self.prefer_in(group, None).await
    }

    async fn prefer_in(&self, group: Option<&str>, member: Option<u64>) -> Result<(), MembersError> {
        let group_numbers = |map: &ShardMap| match group {
            Some(group) => number_of_group(group).into_iter().collect::<Vec<GroupNumber>>(),
            None => map.group_numbers().collect(),
        };
        match group {
            Some(group) => self.check_group(group).await?,
            None => self.check_member()?,
        }
        self.change_preferences(|map| map.preferring(group_numbers(map), member)).await
    }

    /// Changes the preferences in the shard map. Does nothing when `change` returns `None`: they are as wanted already.
    pub(crate) async fn change_preferences(
        &self,
        change: impl Fn(&ShardMap) -> Option<ShardMap>,
    ) -> Result<(), MembersError> {
        let (tables, groups) = (self.registry(), &self.running().groups);
        let unavailable = MembersError::Unavailable;
        let deadline = Instant::now() + ATTEMPTS_TIMEOUT;
        loop {
            self.learn().await.map_err(unavailable)?;
            let mut maps = tables.maps();
            let founded = maps.wait_for(|(_, at)| *at > Revision::ZERO).await;
            let (map, at) = founded.map_err(|_| unavailable(ReadError::Closed))?.clone();
            let Some(changed) = change(&map) else { return Ok(()) };
            match mapping::write(tables, groups, Expectation::Revision(at), &changed).await {
                Ok(Outcome::Committed { .. }) => return self.learn().await.map_err(unavailable),
                Ok(Outcome::Conflict { .. }) => {} // another writer changed the map first
                Err(error) if Instant::now() >= deadline => {
                    return Err(MembersError::Refused { group: DEFAULT_GROUP.into(), reason: error.to_string() });
                }
                Err(_) => tokio::time::sleep(ATTEMPT_INTERVAL).await,
            }
        }
    }
}
