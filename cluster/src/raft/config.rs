//! The configuration of openraft for a group.

use std::time::Duration;

use openraft::{Config, SnapshotPolicy};

use crate::limits::{ELECTION_TIMEOUT, HEARTBEAT_INTERVAL, HEARTBEAT_PAUSE, SINGLE_REPLICA_HEARTBEAT_INTERVAL};

/// Returns the configuration of a group. `has_others` says whether the store may have other replicas.
pub(super) fn config(name: &str, has_others: bool) -> Config {
    let milliseconds = |duration: Duration| duration.as_millis() as u64;
    Config {
        cluster_name: name.to_string(),
        heartbeat_interval: milliseconds(if has_others {
            HEARTBEAT_INTERVAL
        } else {
            SINGLE_REPLICA_HEARTBEAT_INTERVAL
        }),
        heartbeat_min_interval: has_others.then(|| milliseconds(HEARTBEAT_PAUSE)),
        election_timeout_min: milliseconds(if has_others {
            ELECTION_TIMEOUT.start
        } else {
            3 * SINGLE_REPLICA_HEARTBEAT_INTERVAL
        }),
        election_timeout_max: milliseconds(if has_others {
            ELECTION_TIMEOUT.end
        } else {
            6 * SINGLE_REPLICA_HEARTBEAT_INTERVAL
        }),
        max_payload_entries: 1_024,
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: 0,
        // A leader that restarts must be elected again, or it might serve reads before it has applied everything.
        enable_leader_restore: Some(false),
        enable_pre_vote: Some(true),
        // A replica that has lost entries detects that itself (`Service::append`). Its leader must not panic before.
        allow_log_reversion: Some(true),
        ..Config::default()
    }
}
