//! Follows the shard map: founds it, takes over every new version, and takes part in the groups that it names.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use tokio::time::{Instant, sleep};

use crate::group::Tables;
use crate::limits::{ATTEMPT_INTERVAL, DIVIDING_RETRY_INTERVAL, FORMATION_POLL_INTERVAL, GROUP_FORMATION_WAIT};
use crate::raft::{Member, Node};
use crate::replica::groups::{Group, Groups};
use crate::replica::starter::Starter;
use crate::replica::writing::make;
use crate::roster::Replica;
use crate::shard_map::{DEFAULT_GROUP, MAP_KEY, MAP_TABLE, ShardMap, group_name};
use crate::tasks::{self, Task};
use crate::{Expectation, Interest, Key, Mutation, OpenError, Outcome, Table, TableId, Write, WriteError};

/// Takes over the map that this replica has applied, if there is one.
pub(crate) fn look(tables: &Tables) {
    let Some(object) = tables.map_table().get(MAP_KEY) else { return };
    match ShardMap::read(object.bytes()) {
        Ok(map) => tables.learn(map, object.revision()),
        Err(error) => {
            tracing::error!(%error, "the shard map is of a later release: keeping the last one that can be read")
        }
    }
}

/// Takes over every new map, and takes part in the groups that it names, for as long as the store is open.
pub(crate) async fn follow(starter: Rc<Starter>) {
    let mut forming: BTreeMap<Arc<str>, Task> = BTreeMap::new();
    loop {
        look(&starter.tables);
        let map = starter.tables.map();
        for (group_number, founders) in map.group_numbers().skip(1).zip(&map.groups) {
            match starter.start(group_number).await {
                Ok(group) => {
                    let form = || tasks::owned("forming", form(starter.clone(), group, founders.clone()));
                    forming.entry(group_name(group_number)).or_insert_with(form);
                }
                Err(error) => {
                    (starter.options.on_fatal)(&format!("a group cannot be started: {error}"));
                    return;
                }
            }
        }
        changed(&starter.tables.map_table()).await;
    }
}

/// Waits until the map may differ from the one at the time of the call.
async fn changed(table: &Arc<Table>) {
    let known = table.get(MAP_KEY).map(|object| object.revision());
    loop {
        let from = table.revision().max(table.floor());
        let Ok(mut subscription) = table.subscribe(Interest::default(), from) else {
            sleep(ATTEMPT_INTERVAL).await;
            continue;
        };
        loop {
            if table.get(MAP_KEY).map(|object| object.revision()) != known {
                return;
            }
            subscription.changed().await;
            if subscription.read(usize::MAX, &mut Vec::new()).is_err() {
                break; // the history was replaced
            }
        }
    }
}

/// Forms a new group with its founders. The leader of the default group does so at once, the other founders only if it
/// does not: each starts the log with the same entry. A survivor forms a group alone if it has no log of it and no
/// objects were in it.
async fn form(starter: Rc<Starter>, group: Arc<Group>, mut founders: BTreeMap<u64, Replica>) {
    let node = group.leader_client.node();
    if starter.options.is_survivor {
        let is_filled = starter.tables.map().is_filled(group.leader_client.clock().group_number());
        founders = (!is_filled).then(|| (starter.id, Replica::default())).into_iter().collect();
    }
    let waited = Instant::now() + GROUP_FORMATION_WAIT;
    node.formation().stand_if_alone().await;
    while !node.formation().is_formed().await && founders.contains_key(&starter.id) {
        let default = starter.groups.get(DEFAULT_GROUP);
        let leads = default.is_some_and(|default| default.leader_client.node().roster().leader() == Some(starter.id));
        if !leads && Instant::now() < waited {
            sleep(FORMATION_POLL_INTERVAL).await;
            continue;
        }
        if let Err(error) = node.formation().form(described(&starter, &founders)).await {
            tracing::warn!(%error, group = %group.leader_client.clock().name(), "a new group cannot be formed yet");
            sleep(DIVIDING_RETRY_INTERVAL).await;
        }
    }
}

/// Returns the founders of a group as its log should record them. A replica that was alone may have got a name and an
/// address since the map was written.
fn described(starter: &Starter, founders: &BTreeMap<u64, Replica>) -> BTreeMap<u64, Replica> {
    let default = starter.groups.get(DEFAULT_GROUP).filter(|_| founders.len() == 1);
    let known = default.map(|default| voters(default.leader_client.node())).unwrap_or_default();
    founders.iter().map(|(id, replica)| (*id, known.get(id).unwrap_or(replica).clone())).collect()
}

/// Waits until this replica uses the shard map of its cluster. Founds one if there is none.
///
/// # Errors
/// Fails when the store is closed, or the map is from a later release.
pub(crate) async fn wait_for_map(starter: &Starter) -> Result<(), OpenError> {
    let Starter { tables, groups, options, .. } = starter;
    let table = tables.map_table();
    let default = groups.wait_for(DEFAULT_GROUP).await;
    while table.get(MAP_KEY).is_none() {
        let founding = ShardMap::founding(options, &voters(default.leader_client.node()))?;
        match write(tables, groups, Expectation::Absent, &founding).await {
            Err(WriteError::Closed) => return Err(OpenError::Ended),
            Err(_) => sleep(ATTEMPT_INTERVAL).await,
            Ok(_) => {}
        }
        let _ = default.reads.barrier().await; // another replica may have founded it
    }
    look(tables);
    let map = table.get(MAP_KEY).map(|object| ShardMap::read(object.bytes())).transpose()?.unwrap_or_default();
    let wanted = ShardMap::founding(options, &BTreeMap::new())?;
    if (map.shards(), map.data_groups()) != (wanted.shards(), wanted.data_groups()) {
        tracing::info!(%map, "tables keep the shards of the cluster: the configured ones are used only to found one");
    }
    Ok(())
}

/// Returns the members with a vote.
pub(crate) fn voters(node: &Node) -> BTreeMap<u64, Replica> {
    with_vote(node.roster().members())
}

/// Returns those of the given members that have a vote.
pub(crate) fn with_vote(members: Vec<Member>) -> BTreeMap<u64, Replica> {
    let voters = members.into_iter().filter(|member| member.votes);
    voters.map(|member| (member.id, Replica { name: member.name, address: member.address })).collect()
}

/// Replaces the shard map of the cluster, if the expectation holds.
pub(crate) async fn write(
    tables: &Tables,
    groups: &Groups,
    expectation: Expectation,
    map: &ShardMap,
) -> Result<Outcome, WriteError> {
    let (table, key, mutation) = (TableId::new(MAP_TABLE), Key::new(MAP_KEY), Mutation::Put(map.draft()));
    make(tables, groups, Write { table, key, expectation, mutation }, None).await
}
