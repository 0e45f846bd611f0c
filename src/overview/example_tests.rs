//! An example of an overview, for tests.

use super::requests::Requests;
use super::view::{Certificate, Disk, History, Lag, Log, Overview, ResourceView, WatchLag};
use super::warnings::Warning;
use crate::administration::messages::{ClusterView, GroupView, MemberView};
use crate::metrics::slowest::SlowRequest;

/// Returns an overview of two members, one of which cannot be reached, with text that a browser must not interpret.
pub(crate) fn example() -> Overview {
    let member = |name: &str, reachable: bool, leads: &[&str]| MemberView {
        name: name.into(),
        id: format!("{:016x}", 7),
        address: format!("{name}.example:7443"),
        votes: true,
        reachable,
        drained: false,
        leads: leads.iter().map(|group| (*group).to_owned()).collect(),
    };
    let group = GroupView {
        name: "default".into(),
        leader: "a".into(),
        preferred: None,
        term: 3,
        last_index: 1_200,
        commit_index: 1_200,
        applied_index: 1_190,
        snapshot_index: 1_000,
    };
    let lag = Lag { group: "default".into(), member: "b".into(), entries: 12 };
    let bounds = vec![0.005, 0.025, 0.05];
    Overview {
        version: "v1.36.3".into(),
        ready: true,
        failing: Vec::new(),
        clock_seconds: 1_790_000_000.0,
        clock_behind_seconds: 0.0,
        uptime_seconds: 3_700.0,
        cluster: ClusterView {
            cluster: "c1".into(),
            told_by: "a".into(),
            members: vec![member("a", true, &["default"]), member("b", false, &[])],
            groups: vec![group],
            shards: Vec::new(),
        },
        leaderless_groups: Vec::new(),
        lags: vec![lag],
        memory_bytes: Some(104_857_600.0),
        processor_seconds: 12.0,
        disk: Some(Disk { size_bytes: 100 << 30, free_bytes: 60 << 30 }),
        log: Log {
            disk_bytes: 1 << 26,
            segments: 1,
            entries: 200,
            written_bytes: 1 << 30,
            fsyncs: 1_000,
            fsync_seconds: 2.0,
            writes_waiting: 0,
        },
        history: History { window_seconds: 300, changes: 5_000, bytes: 1 << 22 },
        reads_in_progress: 2,
        writes_in_progress: 1,
        watches: 40,
        requests: vec![Requests::of("GET".into(), "pods".into(), vec![90, 10, 0, 0], &bounds)],
        request_bounds_seconds: bounds,
        slowest: vec![SlowRequest {
            at_seconds: 1_789_999_990.0,
            seconds: 0.75,
            verb: "LIST".into(),
            resource: "pods".into(),
            path: "/api/v1/namespaces/<b>&\"x\"/pods".into(),
            code: 200,
            bytes: 2_000_000,
            user_agent: "<script>alert(1)</script>".into(),
        }],
        watches_behind: vec![WatchLag { resource: "pods".into(), selects: "spec.nodeName=n1".into(), seconds: 1.5 }],
        resources: vec![ResourceView {
            resource: "pods".into(),
            objects: 1_000,
            bytes: 1 << 22,
            shards: 1,
            changes: 5_000,
            history_bytes: 1 << 22,
            followers: 40,
            events: 9_000,
        }],
        resources_omitted: 0,
        certificates: vec![Certificate { name: "serving".into(), ends_seconds: 1_790_000_000 + 86_400 * 200 }],
        warnings: vec![Warning {
            at_seconds: 1_789_999_000.0,
            is_error: false,
            target: "flotilla::boot".into(),
            text: "a <warning> of \"it\"".into(),
        }],
    }
}
