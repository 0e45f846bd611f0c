//! The members of a cluster: showing and changing them, and which of them lead.

use std::collections::BTreeMap;

use bytes::Bytes;
use flotilla_proto::replication::{Administer, AdministerAnswer, Method, administration};
use prost::Message;
use tokio::time::Instant;

use crate::limits::{
    ADMISSION_WAIT, ATTEMPT_INTERVAL, ATTEMPTS_TIMEOUT, DRAIN_TIMEOUT, FORMATION_INTERVAL, HELLO_TIMEOUT,
};
use crate::peer::{Callee, Hello, Lane, Peers};
use crate::raft::{GroupStatus, Unchanged};
use crate::replica::running::Running;
use crate::replica::sharding::mapping;
use crate::shard_map::{DEFAULT_GROUP, GroupNumber, group_name};
use crate::store::Store;
use crate::{Expectation, ReadError, Revision};

/// A cluster as one replica sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterStatus {
    /// Id of the cluster; empty for a replica that has never been one of several.
    pub cluster: String,
    /// Every member, by name.
    pub members: Vec<MemberStatus>,
    /// Every group as it is on this replica.
    pub groups: Vec<GroupStatus>,
    /// The id of the preferred leader, by group name, for groups that have a preference.
    pub preferred: BTreeMap<String, u64>,
}

/// A member as a replica sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberStatus {
    /// The id of the replica: a member that starts again with an empty disk gets a new one.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The address at which other replicas reach it, `HOST:PORT`; empty for a single replica.
    pub address: String,
    /// Whether it has a vote in every group that tables are kept in, now or soon. A member without a vote is a learner:
    /// it is sent all entries, but its acknowledgement does not count.
    pub votes: bool,
    /// Whether it is this replica, or this replica has a connection to it.
    pub reachable: bool,
    /// Whether it is drained, so that it should lead nothing, as far as this replica knows.
    pub drained: bool,
    /// The groups that it leads.
    pub leads: Vec<String>,
}

/// The reason why the members or the leaders were not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembersError {
    /// This replica was started without other replicas.
    #[error("this store was started without other members: give it a peer address and the initial cluster")]
    Alone,
    /// This replica is not a member, and does not know the members' present state.
    #[error("this server is not a member of the cluster, or not any more: ask another one")]
    NoMember,
    /// The members cannot be determined.
    #[error("the members cannot be determined: {0}")]
    Unavailable(ReadError),
    /// No member has that name.
    #[error("there is no member {0:?}")]
    Unknown(String),
    /// No group has this name.
    #[error("there is no group {0:?}")]
    UnknownGroup(String),
    /// The replica to admit cannot be asked for its identity.
    #[error("nobody answers at {address}: {reason}")]
    Unreachable {
        /// The address that was tried.
        address: String,
        /// The reason why there is no answer.
        reason: String,
    },
    /// Another replica answers at the address.
    #[error("the member at {address} is called {found:?} and belongs to the cluster {cluster:?}")]
    Other {
        /// The address.
        address: String,
        /// The name of the replica that answers.
        found: String,
        /// The cluster that it belongs to.
        cluster: String,
    },
    /// A member refused a request.
    #[error("{name}: {reason}")]
    Declined {
        /// Its name.
        name: String,
        /// Its reason.
        reason: String,
    },
    /// The preference of a member is stored, but leadership could not be transferred to it at once.
    #[error("{name} is the preferred leader now, but cannot lead yet: {error}")]
    Deferred {
        /// Name of the member.
        name: String,
        /// The reason why it does not lead yet.
        error: Box<MembersError>,
    },
    /// A group could not be changed. Changes that were made before stay; repeating the call continues from there.
    #[error("group {group}: {reason}")]
    Refused {
        /// The name of the group.
        group: String,
        /// The reason.
        reason: String,
    },
}

impl Store {
    /// Returns the state of the cluster, as this replica knows it.
    pub fn cluster(&self) -> ClusterStatus {
        let running = self.running();
        let groups = self.status().groups;
        let is_drained = |id| match &running.peers {
            Some(peers) if id != running.id => peers.is_drained(id),
            _ => running.placement.is_drained(),
        };
        let map = self.registry().map();
        let needed = map.needed_groups();
        let votes_in =
            |id, group_number| running.groups.get(&group_name(group_number)).is_some_and(|group| group.has_voter(id));
        let mut members: Vec<MemberStatus> = Vec::new();
        for (name, group) in &running.groups.all() {
            let leader = group.leader_client.node().roster().leader();
            for member in group.leader_client.node().roster().members() {
                let reachable = || running.peers.as_ref().is_some_and(|peers| peers.is_reachable(member.id));
                let new = || MemberStatus {
                    id: member.id,
                    name: member.name.clone(),
                    address: member.address.clone(),
                    votes: needed.iter().all(|group_number| votes_in(member.id, *group_number)),
                    reachable: member.id == running.id || reachable(),
                    drained: is_drained(member.id),
                    leads: Vec::new(),
                };
                let index = members.iter().position(|known| known.id == member.id);
                let index = index.unwrap_or_else(|| {
                    members.push(new());
                    members.len() - 1
                });
                if leader == Some(member.id) {
                    members[index].leads.push(name.to_string());
                }
            }
        }
        members.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
        let is_member = |id: &u64| members.iter().any(|member| member.id == *id);
        let preferred = map.preferred.iter().filter(|(_, id)| is_member(id));
        let preferred = preferred.map(|(group_number, id)| (group_name(*group_number).to_string(), *id)).collect();
        ClusterStatus { cluster: running.identity.get().cluster, members, groups, preferred }
    }

    /// Makes the replica that listens at an address a member. It replaces a member of the same name. In one group after
    /// the other, also in those that are founded meanwhile, it is first sent everything and then given a vote. Safe to
    /// repeat.
    ///
    /// # Errors
    /// See [`MembersError`].
    pub async fn admit(&self, name: &str, address: &str) -> Result<(), MembersError> {
        let running = self.running();
        let peers = running.peers.as_ref().ok_or(MembersError::Alone)?;
        self.check_member()?;
        let hello = hello_of(&**peers, address).await?;
        let own = running.identity.get().cluster;
        if hello.name != name || !(hello.cluster.is_empty() || hello.cluster == own) {
            let address = address.to_owned();
            return Err(MembersError::Other { address, found: hello.name, cluster: hello.cluster });
        }
        let named = self.cluster().members.into_iter().filter(|member| member.name == name);
        let replaced: Vec<u64> = named.map(|member| member.id).filter(|id| *id != hello.member).collect();
        if !replaced.is_empty() {
            // This comes first: if the call is repeated after the old replica was removed, its preferences cannot be
            // found by its name any more.
            self.change_preferences(|map| map.preferring_instead(&replaced, Some(hello.member))).await?;
        }
        let admit = Administer {
            action: administration::ADMIT,
            member: hello.member,
            name: name.to_owned(),
            address: address.to_owned(),
            ..Administer::default()
        };
        administer(running, DEFAULT_GROUP, &admit).await?;
        let (needed, retired) = self.data_groups().await?;
        self.administer_in(&needed, &admit).await?;
        self.administer_in(&retired, &admit).await
    }

    /// Removes a member, and a replica that was about to replace it. Safe to repeat.
    ///
    /// # Errors
    /// See [`MembersError`].
    pub async fn remove(&self, name: &str) -> Result<(), MembersError> {
        self.check_member()?;
        self.learn().await.map_err(MembersError::Unavailable)?;
        self.member(name).await?;
        // While a member is replaced, two replicas have its name. The one that lacks votes goes first: it counts for
        // less.
        let mut named = self.cluster().members;
        named.retain(|member| member.name == name);
        named.sort_by_key(|member| member.votes);
        for MemberStatus { id, .. } in named {
            self.remove_one(id).await?;
        }
        Ok(())
    }

    /// Removes a replica. It first loses its vote in the group `default`, so that it founds no further groups. It
    /// leaves that group last, so that it learns of all groups that it founded before: some of them may have no leader
    /// without it.
    async fn remove_one(&self, member: u64) -> Result<(), MembersError> {
        let running = self.running();
        let remove = Administer { action: administration::REMOVE, member, ..Administer::default() };
        let unvote = Administer { action: administration::UNVOTE, ..remove.clone() };
        administer(running, DEFAULT_GROUP, &unvote).await?;
        self.change_preferences(|map| map.preferring_instead(&[member], None)).await?;
        let (needed, retired) = self.data_groups().await?;
        self.administer_in(&needed, &remove).await?;
        administer(running, DEFAULT_GROUP, &remove).await?;
        self.administer_in(&retired, &remove).await
    }

    /// Returns the data groups that are needed now, and those that only have history. Rewriting the map makes sure that
    /// every later group is founded by the present members of the group `default`: a division that was decided before
    /// is in the map by now, and one that was not finds a map of a newer revision and is decided again.
    async fn data_groups(&self) -> Result<(Vec<GroupNumber>, Vec<GroupNumber>), MembersError> {
        let (registry, groups) = (self.registry(), &self.running().groups);
        let unavailable = || MembersError::Unavailable(ReadError::Unavailable);
        let deadline = Instant::now() + ATTEMPTS_TIMEOUT;
        loop {
            self.learn().await.map_err(MembersError::Unavailable)?;
            let mut maps = registry.maps();
            let founded = maps.wait_for(|(_, at)| *at > Revision::ZERO).await;
            let (map, at) = founded.map_err(|_| unavailable())?.clone();
            match mapping::write(registry, groups, Expectation::Revision(at), &map.confirmed()).await {
                Ok(_) => break, // on a conflict, the write that came first has the same effect
                Err(error) if Instant::now() >= deadline => {
                    return Err(MembersError::Refused { group: DEFAULT_GROUP.into(), reason: error.to_string() });
                }
                Err(_) => tokio::time::sleep(ATTEMPT_INTERVAL).await,
            }
        }
        self.learn().await.map_err(MembersError::Unavailable)?;
        let map = registry.map();
        let needed = map.needed_groups();
        Ok(map.group_numbers().skip(1).partition(|group_number| needed.contains(group_number)))
    }

    /// Changes these groups, one after the other, each as soon as this replica takes part in it.
    async fn administer_in(&self, group_numbers: &[GroupNumber], request: &Administer) -> Result<(), MembersError> {
        for group_number in group_numbers {
            let name = group_name(*group_number);
            self.running().groups.wait_for(&name).await;
            administer(self.running(), &name, request).await?;
        }
        Ok(())
    }

    /// Transfers the leadership of a group, or of all groups, to a member, which keeps it for a while even if another
    /// member is preferred. Safe to repeat.
    ///
    /// # Errors
    /// See [`MembersError`].
    pub async fn transfer(&self, group: Option<&str>, name: &str) -> Result<(), MembersError> {
        let member = self.member(name).await?;
        if let Some(group) = group {
            self.check_group(group).await?;
        }
        let group_name = group.unwrap_or_default().to_owned();
        self.ask_member(name, Administer { action: administration::HOLD, group: group_name, ..Administer::default() })
            .await?;
        let transfer = Administer { action: administration::TRANSFER, member, ..Administer::default() };
        let all = || self.running().groups.all().into_keys().collect();
        for group in group.map_or_else(all, |group| vec![group.into()]) {
            administer(self.running(), &group, &transfer).await?;
        }
        Ok(())
    }

    /// Transfers all leadership away from a member, and keeps leadership away from it until it is restarted or
    /// undrained. It leads only groups that no other member can lead. Safe to repeat.
    ///
    /// # Errors
    /// See [`MembersError`]. A member whose groups no other member can take yet stays drained, and hands each over as
    /// soon as one can.
    pub async fn drain(&self, name: &str) -> Result<(), MembersError> {
        self.ask_member(name, Administer { action: administration::DRAIN, ..Administer::default() }).await
    }

    /// Transfers all leadership away from this replica, as far as others can take it at once, and keeps it away. Called
    /// before this replica stops answering, so that clients do not notice.
    pub async fn step_down(&self) {
        self.running().placement.step_down().await;
    }

    /// Allows a member to lead again. Safe to repeat.
    ///
    /// # Errors
    /// See [`MembersError`].
    pub async fn undrain(&self, name: &str) -> Result<(), MembersError> {
        self.ask_member(name, Administer { action: administration::UNDRAIN, ..Administer::default() }).await
    }

    /// Sends a member a request that concerns itself, or carries it out here if the member is this replica.
    async fn ask_member(&self, name: &str, request: Administer) -> Result<(), MembersError> {
        let running = self.running();
        let id = self.member(name).await?;
        let refused = |reason| MembersError::Declined { name: name.to_owned(), reason };
        let Some(peers) = running.peers.as_ref().filter(|_| id != running.id) else {
            return running.placement.carry_out(&request).await.map_err(refused);
        };
        let members = self.cluster().members;
        let address = members.into_iter().find(|member| member.id == id).map(|member| member.address);
        let callee = Callee { address: address.unwrap_or_default(), member: Some(id) };
        let (lane, method) = (Lane::Control, Method::Administer as u32);
        let payload = Bytes::from(request.encode_to_vec());
        let answer = peers.call(&callee, lane, method, payload, DRAIN_TIMEOUT).await;
        let answer = answer.map_err(|error| refused(error.to_string()))?;
        match AdministerAnswer::decode(answer) {
            Ok(answer) if answer.refusal.is_empty() => Ok(()),
            Ok(answer) => Err(refused(answer.refusal)),
            Err(error) => Err(refused(error.to_string())),
        }
    }

    /// Returns the id of a member. Reads the newest state before it says that there is none of this name.
    pub(crate) async fn member(&self, name: &str) -> Result<u64, MembersError> {
        let id = || self.cluster().members.iter().find(|member| member.name == name).map(|member| member.id);
        if let Some(id) = id() {
            return Ok(id);
        }
        self.check_member()?;
        self.learn().await.map_err(MembersError::Unavailable)?;
        id().ok_or_else(|| MembersError::Unknown(name.to_owned()))
    }

    /// Waits until this replica takes part in a group. Fails when there is no group of that name.
    pub(crate) async fn check_group(&self, name: &str) -> Result<(), MembersError> {
        if self.running().groups.get(name).is_none() {
            self.check_member()?;
            self.learn().await.map_err(MembersError::Unavailable)?;
            if !self.registry().map().group_numbers().any(|group_number| *group_name(group_number) == *name) {
                return Err(MembersError::UnknownGroup(name.to_owned()));
            }
            self.running().groups.wait_for(name).await;
        }
        Ok(())
    }

    /// Fails unless this replica is a member. Any other replica learns of no change, and would act on outdated state.
    pub(crate) fn check_member(&self) -> Result<(), MembersError> {
        let default = self.running().groups.get(DEFAULT_GROUP);
        match default.is_some_and(|default| default.leader_client.node().exclusion().has_vote()) {
            true => Ok(()),
            false => Err(MembersError::NoMember),
        }
    }
}

/// Returns the identity of the replica that listens at an address. Waits a while for one that is about to start.
async fn hello_of(peers: &dyn Peers, address: &str) -> Result<Hello, MembersError> {
    let began = Instant::now();
    loop {
        match peers.hello_of(address, HELLO_TIMEOUT).await {
            Ok(hello) => return Ok(hello),
            Err(_) if began.elapsed() < ADMISSION_WAIT => tokio::time::sleep(FORMATION_INTERVAL).await,
            Err(error) => {
                return Err(MembersError::Unreachable { address: address.to_owned(), reason: error.to_string() });
            }
        }
    }
}

async fn administer(running: &Running, group: &str, request: &Administer) -> Result<(), MembersError> {
    let target = running.groups.get(group).ok_or_else(|| MembersError::UnknownGroup(group.to_owned()))?;
    target.leader_client.administer(request.clone()).await.map_err(|error| MembersError::Refused {
        group: group.to_owned(),
        reason: match error {
            Unchanged::NotLeader(_) => "it has no leader".into(),
            error => error.to_string(),
        },
    })
}
