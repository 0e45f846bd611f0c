//! Where the leaders of groups are to sit: saying so in the shard map.

use tokio::time::Instant;

use crate::limits::{ATTEMPT_INTERVAL, ATTEMPTS_TIMEOUT};
use crate::replica::mapping;
use crate::shard_map::{DEFAULT_GROUP, ShardMap, Slot, group_slot};
use crate::store::Store;
use crate::{Expectation, MembersError, Outcome, ReadError, Revision};

impl Store {
    /// Says that a member is to lead a group, or all that there are now, whenever it can, and lets it lead at once.
    /// That is so until somebody says otherwise, the member is removed, or the cluster is restored from a backup;
    /// whoever takes the place of the member takes this over. Safe to repeat.
    ///
    /// # Errors
    /// See [`MembersError`]; [`MembersError::Deferred`] when it is said, and the member does not lead yet.
    pub async fn prefer(&self, group: Option<&str>, name: &str) -> Result<(), MembersError> {
        let member = self.member(name).await?;
        self.prefer_in(group, Some(member)).await?;
        let deferred = |error| MembersError::Deferred { name: name.to_owned(), error: Box::new(error) };
        self.transfer(group, name).await.map_err(deferred)
    }

    /// Says that nobody in particular is to lead a group, or any: its leader stays until leaders are spread evenly.
    /// Safe to repeat.
    ///
    /// # Errors
    /// See [`MembersError`].
    pub async fn prefer_nobody(&self, group: Option<&str>) -> Result<(), MembersError> {
        self.prefer_in(group, None).await
    }

    async fn prefer_in(&self, group: Option<&str>, member: Option<u64>) -> Result<(), MembersError> {
        let slots = |map: &ShardMap| match group {
            Some(group) => group_slot(group).into_iter().collect::<Vec<Slot>>(),
            None => map.slots().collect(),
        };
        match group {
            Some(group) => self.check_group(group).await?,
            None => self.check_member()?,
        }
        self.change_preferences(|map| map.preferring(slots(map), member)).await
    }

    /// Makes a change of what the map says of preferences, unless it is made already.
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
                Ok(Outcome::Conflict { .. }) => {} // by what somebody else has made of it
                Err(error) if Instant::now() >= deadline => {
                    return Err(MembersError::Refused { group: DEFAULT_GROUP.into(), reason: error.to_string() });
                }
                Err(_) => tokio::time::sleep(ATTEMPT_INTERVAL).await,
            }
        }
    }
}
