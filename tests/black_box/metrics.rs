//! The metrics that the server exposes.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::cluster::{Places, until, write};
use crate::support::{CONFIG_MAPS, Connection, DataDir, config_map, config_map_path};

/// The text of one scrape of `/metrics`.
struct Metrics(String);

impl Metrics {
    fn look(connection: &mut Connection) -> Self {
        let answer = connection.get("/metrics");
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(
            answer.header("content-type"),
            Some("text/plain; version=0.0.4; charset=utf-8; escaping=underscores")
        );
        Self(answer.text())
    }

    /// Returns the value of the series with exactly these labels, or 0 if that series does not exist.
    fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let mut want: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        want.sort();
        let series = self.0.lines().find_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let labels = match series.strip_prefix(name)? {
                "" => "",
                labels => labels.strip_prefix('{')?.strip_suffix('}')?,
            };
            let mut labels: Vec<&str> = labels.split(',').filter(|label| !label.is_empty()).collect();
            labels.sort_unstable();
            (labels == want).then_some(value)
        });
        series.map_or(0.0, |value| value.parse().unwrap_or_else(|_| panic!("{name}: {value}")))
    }

    /// Returns the number of requests for ConfigMaps with these labels.
    fn requests(&self, verb: &str, scope: &str, code: &str, dry_run: &str) -> f64 {
        let mut labels = of_config_maps(verb, scope);
        labels.extend([("code", code), ("dry_run", dry_run)]);
        self.value("apiserver_request_total", &labels)
    }
}

const LONG_RUNNING: &str = "apiserver_longrunning_requests";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn of_config_maps<'a>(verb: &'a str, scope: &'a str) -> Vec<(&'a str, &'a str)> {
    requests_for("configmaps", verb, scope)
}

fn requests_for<'a>(resource: &'a str, verb: &'a str, scope: &'a str) -> Vec<(&'a str, &'a str)> {
    let of = [("component", "apiserver"), ("group", ""), ("resource", resource), ("subresource", "")];
    [&of[..], &[("version", "v1"), ("verb", verb), ("scope", scope)]].concat()
}

#[test]
fn requests_are_counted_by_their_labels() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut administrator = server.connect();
    let before = Metrics::look(&mut administrator);
    for name in ["a", "b"] {
        administrator.post(CONFIG_MAPS, &config_map(name, "1")).expect(201);
    }
    administrator.post(&format!("{CONFIG_MAPS}?dryRun=All"), &config_map("c", "1")).expect(201);
    administrator.post(CONFIG_MAPS, &config_map("a", "1")).expect(409);
    for _ in 0..3 {
        administrator.get(&config_map_path("a")).expect(200);
    }
    administrator.get(&config_map_path("none")).expect(404);
    administrator.get(CONFIG_MAPS).expect(200);
    administrator.get("/api/v1/configmaps").expect(200);
    let apply = br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"d"}}"#;
    let path = format!("{}?fieldManager=t", config_map_path("d"));
    administrator.request("PATCH", &path, "application/apply-patch+yaml", apply).expect(201);
    administrator.delete(&config_map_path("b")).expect(200);
    administrator.delete(CONFIG_MAPS).expect(200);
    let after = Metrics::look(&mut administrator);
    for (verb, scope, code, dry_run, count) in [
        ("POST", "resource", "201", "", 2.0),
        ("POST", "resource", "201", "All", 1.0),
        ("POST", "resource", "409", "", 1.0),
        ("GET", "resource", "200", "", 3.0),
        ("GET", "resource", "404", "", 1.0),
        ("LIST", "namespace", "200", "", 1.0),
        ("LIST", "cluster", "200", "", 1.0),
        ("APPLY", "resource", "201", "", 1.0),
        ("PATCH", "resource", "201", "", 0.0),
        ("DELETE", "resource", "200", "", 1.0),
        ("DELETE", "namespace", "200", "", 1.0),
    ] {
        let counted = after.requests(verb, scope, code, dry_run) - before.requests(verb, scope, code, dry_run);
        assert_eq!(counted, count, "{verb} {scope} {code} {dry_run}\n{}", after.0);
    }
    let gets = of_config_maps("GET", "resource");
    assert_eq!(after.value("apiserver_request_sli_duration_seconds_count", &gets), 4.0);
    assert_eq!(after.value("apiserver_response_sizes_count", &gets), 4.0);
    assert!(after.value("apiserver_response_sizes_sum", &gets) > 500.0);
    let timed: Vec<_> = gets.iter().copied().chain([("dry_run", ""), ("le", "60")]).collect();
    assert_eq!(after.value("apiserver_request_duration_seconds_bucket", &timed), 4.0);
    let (added, admitted) = (("operation", "CREATE"), ("type", "admit"));
    let step = [added, admitted, ("rejected", "false")];
    assert!(after.value("apiserver_admission_step_admission_duration_seconds_count", &step) >= 5.0);
    let plugin = [added, admitted, ("rejected", "false"), ("name", "NamespaceLifecycle")];
    assert!(after.value("apiserver_admission_controller_admission_duration_seconds_count", &plugin) >= 5.0);
}

#[test]
fn text_of_clients_is_no_label() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut administrator = server.connect();
    for number in 0..50 {
        administrator.get(&format!("/api/v1/namespaces/default/madeup{number}"));
        administrator.get(&format!("/apis/madeup{number}/v1/things"));
        administrator.get(&format!("/madeup{number}"));
        administrator.get(&format!("/api/v1/namespaces/default/configmaps/madeup{number}?dryRun=madeup{number}"));
        administrator.request(&format!("MADEUP{number}"), CONFIG_MAPS, "", b"");
    }
    let metrics = Metrics::look(&mut administrator);
    let lines: Vec<_> = metrics.0.lines().filter(|line| line.to_lowercase().contains("madeup")).collect();
    assert!(lines.is_empty(), "{lines:#?}");
    assert_eq!(metrics.value("flotilla_request_series_refused_total", &[]), 0.0);
}

#[test]
fn watches_objects_and_the_store_are_measured() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut administrator = server.connect();
    let mut watch = server.connect().watch(&format!("{SECRETS}?watch=1")).expect("an answer").expect("a watch");
    let before = Metrics::look(&mut administrator);
    let watching = requests_for("secrets", "WATCH", "namespace");
    assert_eq!(before.value(LONG_RUNNING, &watching), 1.0);
    for number in 0..3 {
        administrator.post(SECRETS, &json!({"metadata": {"name": format!("w{number}")}})).expect(201);
        watch.next().expect("an event");
    }
    let after = Metrics::look(&mut administrator);
    let change = |name: &str, labels: &[(&str, &str)]| after.value(name, labels) - before.value(name, labels);
    let resource = [("group", ""), ("resource", "secrets"), ("version", "v1")];
    assert_eq!(change("apiserver_watch_events_total", &resource), 3.0);
    assert_eq!(change("apiserver_watch_events_sizes_count", &resource), 3.0);
    assert_eq!(change("apiserver_resource_objects", &resource[..2]), 3.0);
    assert_eq!(change("apiserver_storage_objects", &[("resource", "secrets")]), 3.0);
    let creates = [("group", ""), ("resource", "secrets"), ("operation", "create")];
    assert_eq!(change("etcd_request_duration_seconds_count", &creates), 3.0);
    assert!(change("flotilla_wal_fsyncs_total", &[]) >= 3.0);
    assert!(change("flotilla_wal_written_bytes_total", &[]) > 300.0);
    assert!(change("flotilla_group_applied_index", &[("group", "default")]) >= 3.0);
    assert_eq!(after.value("flotilla_group_leader", &[("group", "default")]), 1.0);
    assert!(after.value("process_resident_memory_bytes", &[]) > 1e6);
    assert!(change("process_cpu_seconds_total", &[]) > 0.0);
    assert!(after.value("process_open_fds", &[]) > 5.0);
    assert!(after.0.contains("kubernetes_build_info{build_date="));
    assert!(after.value("workqueue_adds_total", &[("name", "serviceaccount")]) >= 1.0);
    drop(watch);
    // One scrape may read the counter before the watch ends, and the gauge after that: both are waited for.
    let ended = [&watching[..], &[("code", "200"), ("dry_run", "")]].concat();
    let deadline = Instant::now() + Duration::from_secs(90);
    loop {
        let metrics = Metrics::look(&mut administrator);
        let (open, over) = (metrics.value(LONG_RUNNING, &watching), metrics.value("apiserver_request_total", &ended));
        if (open, over) == (0.0, 1.0) {
            break;
        }
        assert!(Instant::now() < deadline, "the client is gone: {open} watches are open, {over} are over");
        administrator.post(SECRETS, &json!({"metadata": {"generateName": "x-"}})).expect(201);
        sleep(Duration::from_millis(50));
    }
}

#[test]
fn metrics_need_permission() {
    let directory = DataDir::new();
    let server = directory.start();
    let refused = server.connect_anonymously().get("/metrics").expect(403);
    assert_eq!(refused["message"], "forbidden: User \"system:anonymous\" cannot get path \"/metrics\"");
    let mut administrator = server.connect();
    let metrics = Metrics::look(&mut administrator);
    assert_eq!(metrics.value("authorization_attempts_total", &[("result", "no-opinion")]), 1.0);
    let unknown = server.connect_anonymously().call("GET", "/version", &[("Authorization", "Bearer x")], b"");
    assert_eq!(unknown.expect("an answer").status, 401);
    let metrics = Metrics::look(&mut administrator);
    assert_eq!(metrics.value("authentication_attempts", &[("result", "error")]), 1.0);
    assert!(metrics.value("authentication_attempts", &[("result", "success")]) >= 2.0);
    let checks = administrator.get("/metrics/slis").text();
    for check in ["{name=\"etcd\",type=\"readyz\"} 1\n", "{name=\"shutdown\",type=\"readyz\"} 1\n"] {
        assert!(checks.contains(&format!("kubernetes_healthcheck{check}")), "{checks}");
    }
    let packed = administrator.call("GET", "/metrics", &[("Accept-Encoding", "gzip")], b"").expect("an answer");
    assert_eq!(packed.status, 200);
}

#[test]
fn metrics_show_an_unreachable_member() {
    let places = Places::new();
    let [a, b, c] = places.start_all();
    until("b reaches c", || {
        let metrics = Metrics::look(&mut b.connect());
        metrics.value("flotilla_member_reachable", &[("member", "c")]) == 1.0
    });
    c.kill();
    (0..3).for_each(|number| write(&a, &format!("w{number}")));
    let (group, gone) = (("group", "default"), ("member", "c"));
    until("the leader reports how far c lags", || {
        [&a, &b].iter().any(|server| {
            let metrics = Metrics::look(&mut server.connect());
            let leads = metrics.value("flotilla_group_leader", &[group]) == 1.0;
            leads && metrics.value("flotilla_group_lag_entries", &[group, gone]) >= 3.0
        })
    });
    for server in [&a, &b] {
        until("it has a leader, and does not reach c", || {
            let metrics = Metrics::look(&mut server.connect());
            metrics.value("flotilla_group_has_leader", &[group]) == 1.0
                && metrics.0.contains("flotilla_member_reachable{member=\"c\"} 0\n")
        });
        // Controllers run on one member only, but every member exposes their metrics.
        until("its controller has no work", || {
            Metrics::look(&mut server.connect()).0.contains("workqueue_depth{name=\"namespace\"} 0\n")
        });
    }
    b.kill();
    until("no group has a leader", || {
        Metrics::look(&mut a.connect()).value("flotilla_group_has_leader", &[group]) == 0.0
    });
}
