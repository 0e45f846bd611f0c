//! The administration of a cluster over HTTP: its members, its leaders, and the number of shards of each resource.
//! Kubernetes has no such paths; neither discovery nor `/` lists them, and only members of `system:masters` may use
//! them.

use std::sync::Arc;

use actix_web::{HttpResponse, web};
use bytes::Bytes;
use flotilla_cluster::{ClusterStatus, DivideError, MembersError, Store, TableId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::head::Head;
use super::{Gateway, body};
use crate::administration::messages::{
    self, CLUSTER_PATH, ClusterView, Divide, Drain, GroupView, Join, MemberView, Named, Preference, ShardsView,
    Transfer,
};
use crate::answer;
use crate::config::{is_member_address, is_member_name};
use crate::field::quote;
use crate::limits;
use crate::request::Media;
use crate::status::{ApiError, ApiResult, Details};
use crate::tasks;

/// Locks for changes of the cluster through this server: one each for members, leaders and shards. They admit one
/// change of a kind at a time; others wait for it.
#[derive(Debug, Default)]
pub struct Turns {
    membership: Arc<Mutex<()>>,
    leadership: Arc<Mutex<()>>,
    shards: Arc<Mutex<()>>,
}

/// Returns the rest of a path after [`CLUSTER_PATH`]: empty, or the name of a change. `None` for other paths.
pub(super) fn asked(path: &str) -> Option<&str> {
    match path.strip_prefix(CLUSTER_PATH)? {
        "" => Some(""),
        below => below.strip_prefix('/'),
    }
}

/// Answers a request whose user is authorized.
pub(super) async fn respond(
    gateway: &Gateway,
    head: &Head<'_>,
    asked: &str,
    payload: web::Payload,
) -> ApiResult<HttpResponse> {
    let reads = matches!(head.method, "GET" | "HEAD");
    let allowed = match asked {
        "" => reads,
        messages::JOIN | messages::REMOVE | messages::TRANSFER | messages::DRAIN | messages::SHARDS => {
            head.method == "POST"
        }
        _ => return Err(ApiError::no_such_path()),
    };
    if !allowed {
        let message = "the server does not allow this method on the requested resource";
        return Err(ApiError::new(405, "MethodNotAllowed", message));
    }
    let deadline = Instant::now() + limits::MEMBERS_CHANGE_WAIT;
    if !reads {
        if body::media(head.content_type)? != Media::Json {
            return Err(ApiError::bad_request("the body must be JSON"));
        }
        let read = timeout_at(deadline, body::read(payload)).await;
        let body = read.map_err(|_| ApiError::timeout("the body did not come in time", 1))??;
        change(gateway, asked, &body, deadline).await?;
    }
    encoded(&view(&gateway.registry.tables.store), head.pretty)
}

/// Makes a change, and waits for it until the deadline of the request.
async fn change(gateway: &Gateway, asked: &str, body: &[u8], deadline: Instant) -> ApiResult<()> {
    let (turns, store) = (&gateway.turns, gateway.registry.tables.store.clone());
    match asked {
        messages::JOIN => {
            let Join { name, address } = decoded(body)?;
            check_name(&name)?;
            if !is_member_address(&address) {
                return Err(ApiError::bad_request(format!("{} is not HOST:PORT", quote(&address))));
            }
            finish(&turns.membership, deadline, async move { store.admit(&name, &address).await }).await
        }
        messages::REMOVE => {
            let Named { name } = decoded(body)?;
            check_name(&name)?;
            finish(&turns.membership, deadline, async move { store.remove(&name).await }).await
        }
        messages::TRANSFER => {
            let wanted: Transfer = decoded(body)?;
            if let Some(name) = &wanted.name {
                check_name(name)?;
            } else if wanted.preference != Some(Preference::Nobody) {
                return Err(ApiError::bad_request("it must be said who is to lead"));
            }
            finish(&turns.leadership, deadline, async move { transfer(&store, &wanted).await }).await
        }
        messages::SHARDS => {
            let Divide { shards } = decoded(body)?;
            let change = async move {
                for (resource, count) in shards.iter() {
                    store.divide(&TableId::new(resource), count).await?;
                }
                Ok::<(), DivideError>(())
            };
            finish(&turns.shards, deadline, change).await
        }
        _ => {
            let Drain { name, undo } = decoded(body)?;
            check_name(&name)?;
            let change = async move { if undo { store.undrain(&name).await } else { store.drain(&name).await } };
            finish(&turns.leadership, deadline, change).await
        }
    }
}

async fn transfer(store: &Store, Transfer { name, group, preference }: &Transfer) -> Result<(), MembersError> {
    let group = group.as_deref();
    if *preference == Some(Preference::Nobody) {
        store.prefer_nobody(group).await?;
    }
    match name {
        Some(name) if *preference == Some(Preference::Named) => store.prefer(group, name).await,
        Some(name) => store.transfer(group, name).await,
        None => Ok(()),
    }
}

fn decoded<T: DeserializeOwned>(body: &[u8]) -> ApiResult<T> {
    serde_json::from_slice(body)
        .map_err(|error| ApiError::bad_request(format!("the body is not as it must be: {error}")))
}

fn check_name(name: &str) -> ApiResult<()> {
    match is_member_name(name) {
        true => Ok(()),
        false => Err(ApiError::bad_request(format!("{} cannot be the name of a member", quote(name)))),
    }
}

/// Makes a change once the changes before it are done. The change continues after its client has gone, because it
/// should not remain half made. A client that repeats the request waits for it.
async fn finish<E: ChangeRefusal>(
    turn: &Arc<Mutex<()>>,
    deadline: Instant,
    change: impl Future<Output = Result<(), E>> + 'static,
) -> ApiResult<()> {
    let going_on = || ApiError::timeout("the cluster is being changed; repeat the request to wait for it", 1);
    let turn = timeout_at(deadline, Arc::clone(turn).lock_owned()).await.map_err(|_| going_on())?;
    let changing = tasks::detached_here("change of members", async move {
        let changed = change.await;
        if let Err(error) = &changed {
            tracing::warn!(%error, "the cluster could not be changed");
        }
        drop(turn);
        changed
    });
    match timeout_at(deadline, changing).await {
        Err(_) => Err(going_on()),
        Ok(Err(ended)) => Err(ApiError::internal(ended)),
        Ok(Ok(changed)) => changed.map_err(|error| error.refusal()),
    }
}

/// The reason why a change was not made.
trait ChangeRefusal: std::fmt::Display + 'static {
    /// Returns the error that clients see.
    fn refusal(&self) -> ApiError;
}

impl ChangeRefusal for MembersError {
    fn refusal(&self) -> ApiError {
        refusal(self)
    }
}

impl ChangeRefusal for DivideError {
    fn refusal(&self) -> ApiError {
        match self {
            Self::Shards(_) => ApiError::bad_request(self.to_string()),
            Self::Read(_) | Self::Write(_) => ApiError::unavailable(self.to_string(), 1),
        }
    }
}

fn refusal(error: &MembersError) -> ApiError {
    let (code, reason) = match error {
        MembersError::Unknown(_) | MembersError::UnknownGroup(_) => (404, "NotFound"),
        MembersError::Unavailable(_) | MembersError::Unreachable { .. } => {
            return ApiError::unavailable(error.to_string(), 1);
        }
        MembersError::Alone
        | MembersError::NoMember
        | MembersError::Other { .. }
        | MembersError::Declined { .. }
        | MembersError::Deferred { .. }
        | MembersError::Refused { .. } => (409, "Conflict"),
    };
    let named = match error {
        MembersError::Unknown(name) => Details { name: name.clone(), kind: "members".into(), ..Details::default() },
        MembersError::UnknownGroup(name) => Details { name: name.clone(), kind: "groups".into(), ..Details::default() },
        _ => return ApiError::new(code, reason, error.to_string()),
    };
    ApiError { details: Some(Box::new(named)), ..ApiError::new(code, reason, error.to_string()) }
}

/// Returns the cluster as this server sees it.
pub(super) fn view(store: &Store) -> ClusterView {
    let ClusterStatus { cluster, members, groups, preferred } = store.cluster();
    let named = |id: u64| members.iter().find(|member| member.id == id).map_or("", |member| &member.name).to_owned();
    let groups = groups.iter().map(|group| GroupView {
        name: group.name.clone(),
        leader: group.leader.map(named).unwrap_or_default(),
        preferred: preferred.get(&group.name).map(|id| named(*id)),
        term: group.term,
        last_index: group.last_index,
        commit_index: group.commit_index,
        applied_index: group.applied_index,
        snapshot_index: group.snapshot_index,
    });
    let (groups, told_by) = (groups.collect(), named(store.node()));
    let members = members.into_iter().map(|member| MemberView {
        id: format!("{:016x}", member.id),
        name: member.name,
        address: member.address,
        votes: member.votes,
        reachable: member.reachable,
        drained: member.drained,
        leads: member.leads,
    });
    let shards = store.shards().into_iter().map(|table| ShardsView {
        resource: table.table.to_string(),
        groups: table.groups,
        next: table.next,
    });
    ClusterView { cluster, told_by, members: members.collect(), groups, shards: shards.collect() }
}

/// Returns an answer in JSON.
pub(super) fn encoded(view: &impl Serialize, pretty: bool) -> ApiResult<HttpResponse> {
    let written = if pretty { serde_json::to_vec_pretty(view) } else { serde_json::to_vec(view) };
    let mut bytes = written.map_err(ApiError::internal)?;
    bytes.push(b'\n');
    let body = answer::Encoded { bytes: Bytes::from(bytes), content_type: Media::Json.name() };
    Ok(answer::respond(200, body, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_the_cluster_are_administration() {
        for (path, want) in [
            ("/flotilla/v1/cluster", Some("")),
            ("/flotilla/v1/cluster/join", Some("join")),
            ("/flotilla/v1/cluster/join/", Some("join/")),
            ("/flotilla/v1/clusters", None),
            ("/flotilla/v1", None),
            ("/metrics", None),
        ] {
            assert_eq!(asked(path), want, "{path}");
        }
    }

    #[test]
    fn refusals_have_codes_and_say_what_to_do() {
        let unknown = refusal(&MembersError::Unknown("d".into()));
        assert_eq!((unknown.code, unknown.reason, &*unknown.message), (404, "NotFound", "there is no member \"d\""));
        let address = "h:1".to_owned();
        let unreachable = refusal(&MembersError::Unreachable { address, reason: "refused".into() });
        assert_eq!((unreachable.code, unreachable.retry_after_seconds()), (503, 1));
        assert_eq!(refusal(&MembersError::Alone).code, 409);
        let refused = MembersError::Refused { group: "g1".into(), reason: "the last member cannot be removed".into() };
        assert_eq!(refusal(&refused).message, "group g1: the last member cannot be removed");
    }

    #[actix_web::test]
    async fn a_change_that_takes_long_is_waited_for_again() {
        let turn = Arc::new(Mutex::new(()));
        let (release, released) = tokio::sync::oneshot::channel::<()>();
        let soon = || Instant::now() + std::time::Duration::from_millis(20);
        let first = finish(&turn, soon(), async move {
            let _ = released.await;
            Ok::<(), MembersError>(())
        });
        assert_eq!(first.await.expect_err("it takes longer").code, 504);
        assert_eq!(
            finish(&turn, soon(), async { Ok::<(), MembersError>(()) }).await.expect_err("not its turn").code,
            504
        );
        release.send(()).expect("it goes on");
        let later = Instant::now() + std::time::Duration::from_secs(120);
        finish(&turn, later, async { Ok::<(), MembersError>(()) }).await.expect("its turn comes");
    }
}
