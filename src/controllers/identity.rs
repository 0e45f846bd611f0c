//! Maintains the Lease in `kube-system` that identifies this server while it runs.
//!
//! The leases show which servers exist. No decision depends on them, so they are renewed seldom: every write wakes a
//! group that rests.

use std::rc::Rc;

use flotilla_cluster::{Interest, Scope, Selection};
use flotilla_proto::time::Timestamp;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use tokio::sync::Notify;

use super::agent::Agent;
use crate::follow::follow;
use crate::limits;
use crate::registry::now;
use crate::request::DeleteOptions;
use crate::rules::names;
use crate::scan::scan;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::{Target, stored_value};
use crate::unreadable::skip_unreadable;

const NAMESPACE: &str = "kube-system";
/// Label of these leases, and its value.
const IDENTITY: (&str, &str) = ("apiserver.kubernetes.io/identity", "kube-apiserver");
const HOST_LABEL: &str = "kubernetes.io/hostname";

/// Renews the lease of this server, and removes the expired leases of others.
pub async fn run(agent: Rc<Agent>) -> ApiResult<()> {
    let leases = agent.resource("coordination.k8s.io", "leases")?;
    let name = name_of(&agent.settings.member);
    let holder = format!("{name}_{}", uuid::Uuid::new_v4());
    let target = Target::object(&leases, NAMESPACE, &name);
    let (table, deleted) = (agent.registry.tables.table(&leases), Notify::new());
    let own = Interest { namespace: Some(NAMESPACE.into()), name: Some((&*name).into()), ..Interest::default() };
    let following = follow(&table, own, |seen| {
        if seen.deleted().is_some() {
            deleted.notify_one();
        }
    });
    tokio::select! {
        () = following => Ok(()),
        kept = keep(&agent, target, &holder, &deleted) => kept,
    }
}

async fn keep(agent: &Agent, target: Target<'_>, holder: &str, deleted: &Notify) -> ApiResult<()> {
    let name = target.name;
    loop {
        let kept = match renew(agent, target, holder).await {
            Ok(()) => forget_gone(agent, target.served).await,
            failed => failed,
        };
        let interval = match kept {
            Ok(()) => limits::IDENTITY_RENEWAL_INTERVAL,
            Err(error) => {
                tracing::warn!(%error, lease = name, "cannot renew the lease of this server yet");
                limits::IDENTITY_RETRY_INTERVAL
            }
        };
        if tokio::time::timeout(interval, deleted.notified()).await.is_ok() {
            tokio::time::sleep(limits::IDENTITY_SETTLE).await;
        }
    }
}

/// Returns the name of a server's lease. It differs between members and survives restarts.
fn name_of(member: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, member.as_bytes());
    let hex = digest.as_ref().iter().take(13).map(|byte| format!("{byte:02x}"));
    hex.fold(String::from("apiserver-"), |name, byte| name + &byte)
}

async fn renew(agent: &Agent, target: Target<'_>, holder: &str) -> ApiResult<()> {
    let member = &*agent.settings.member;
    let tell = |lease: &mut Value| {
        lease.set_at(&["metadata", "labels", IDENTITY.0], IDENTITY.1);
        if names::label_value(member).is_empty() {
            lease.set_at(&["metadata", "labels", HOST_LABEL], member);
        }
        lease.set_at(&["spec", "holderIdentity"], holder);
        lease.set_at(&["spec", "leaseDurationSeconds"], limits::IDENTITY_LEASE_SECONDS);
        lease.set_at(&["spec", "renewTime"], now().micro());
    };
    if agent.get(target)?.is_some() {
        match agent.edit(target, "", tell).await {
            Err(ApiError { code: 404, .. }) => {} // deleted meanwhile
            edited => return edited,
        }
    }
    let mut lease = value!({"metadata": {"name": (target.name), "namespace": NAMESPACE}});
    tell(&mut lease);
    agent.create(Target { name: "", ..target }, lease).await.map(drop)
}

/// Removes leases that their servers have not renewed in time.
async fn forget_gone(agent: &Agent, leases: &Served) -> ApiResult<()> {
    let selection = Selection { scope: Scope::namespace(NAMESPACE), ..Selection::default() };
    for objects in scan(&agent.registry.tables.table(leases).snapshot(), selection) {
        for object in objects.map_err(ApiError::internal)? {
            let Some(lease) = skip_unreadable(stored_value(&object)) else { continue };
            if !is_gone(&lease, now()) {
                continue;
            }
            let name = lease.str_at(&["metadata", "name"]);
            let version = lease.str_at(&["metadata", "resourceVersion"]).to_owned();
            let options = DeleteOptions { resource_version: Some(version), ..DeleteOptions::default() };
            let target = Target::object(leases, NAMESPACE, name);
            match agent.delete(target, &options).await {
                Err(ApiError { code: 409, .. }) => {} // it was renewed meanwhile
                deleted => deleted?,
            }
        }
    }
    Ok(())
}

/// Returns whether a lease has expired.
fn is_gone(lease: &Value, now: Timestamp) -> bool {
    if lease.str_at(&["metadata", "labels", IDENTITY.0]) != IDENTITY.1 {
        return false;
    }
    let renewed = Timestamp::parse_micro(lease.str_at(&["spec", "renewTime"]));
    let seconds = lease.at(&["spec", "leaseDurationSeconds"]).as_int().unwrap_or(limits::IDENTITY_LEASE_SECONDS);
    renewed.map_or(true, |renewed| renewed.seconds.saturating_add(seconds) < now.seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_gone_if_its_lease_was_not_renewed() {
        let lease = |identity: &str, renewed: &str| {
            value!({
                "metadata": {"labels": {"apiserver.kubernetes.io/identity": identity}},
                "spec": {"leaseDurationSeconds": 3600_i64, "renewTime": renewed}
            })
        };
        let now = Timestamp::parse("2026-01-01T12:00:00Z").unwrap();
        assert!(!is_gone(&lease("kube-apiserver", "2026-01-01T11:00:00.000000Z"), now));
        assert!(is_gone(&lease("kube-apiserver", "2026-01-01T10:59:59.000000Z"), now));
        assert!(is_gone(&lease("kube-apiserver", ""), now));
        assert!(!is_gone(&lease("other", "2020-01-01T00:00:00.000000Z"), now), "it is somebody else's");
    }

    #[test]
    fn lease_names_differ_between_members_and_stay() {
        assert_eq!(name_of("a"), "apiserver-ca978112ca1bbdcafac231b39a");
        assert_ne!(name_of("a"), name_of("b"));
    }
}
