//! These tests bring servers into the states that the alerts of `deploy/prometheus/alerts.yaml` warn of: their metrics
//! then meet the conditions of these alerts. `deploy/prometheus/tests.yaml` tests how long a condition must hold.
//!
//! `unreadable` tests the metric of objects that cannot be read. `FlotillaDown` depends on `up`, which Prometheus
//! itself sets.

use std::fs::{self, File};
use std::io::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::cluster::{Places, until, until_within};
use crate::support::{CONFIG_MAPS, Connection, DataDir, PATIENCE, Server, config_map, config_map_path};

/// Replaces functions of the C library. While the file that a variable names exists, an fsync takes 2.2 s longer
/// (`SLOW_FSYNC`), sending takes 0.4 s longer (`SLOW_SEND`), or the clock is 2 s ahead (`WRONG_CLOCK`).
const FRAGILE_LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
static int is_there(const char *variable) {
    const char *path = getenv(variable);
    return path && access(path, F_OK) == 0;
}
static int slowly(long number, int file) {
    if (is_there("SLOW_FSYNC")) usleep(2200000);
    return syscall(number, file);
}
int fsync(int file) { return slowly(SYS_fsync, file); }
int fdatasync(int file) { return slowly(SYS_fdatasync, file); }
ssize_t send(int socket, const void *bytes, size_t length, int flags) {
    if (is_there("SLOW_SEND")) usleep(400000);
    return syscall(SYS_sendto, socket, bytes, length, flags, NULL, 0);
}
ssize_t writev(int file, const struct iovec *parts, int count) {
    if (is_there("SLOW_SEND")) usleep(400000);
    return syscall(SYS_writev, file, parts, count);
}
int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && clock == CLOCK_REALTIME && is_there("WRONG_CLOCK")) time->tv_sec += 2;
    return result;
}
"#;

/// Returns whether the condition of an alert holds for the value on its left side. The right side is a number or a
/// product.
fn fires(alert: &str, value: f64) -> bool {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/prometheus/alerts.yaml");
    let alerts = fs::read_to_string(path).expect("alerts");
    let rule = alerts.split(&format!("- alert: {alert}\n")).nth(1).unwrap_or_else(|| panic!("no alert {alert}"));
    let condition = rule.lines().nth(1).expect("a condition").trim();
    let (at, operator) = condition.char_indices().rfind(|(_, c)| "<>=".contains(*c)).expect("a comparison");
    let limit: f64 = condition[at + 1..].split('*').map(|it| it.trim().parse::<f64>().expect("a number")).product();
    match operator {
        '<' => value < limit,
        '>' => value > limit,
        _ => (value - limit).abs() < f64::EPSILON,
    }
}

/// Metrics of a server.
struct Metrics(String);

impl Metrics {
    fn of(client: &mut Connection) -> Self {
        let answer = client.get("/metrics");
        assert_eq!(answer.status, 200);
        Self(answer.text())
    }

    /// Returns the values of a metric whose labels contain all of these texts.
    fn values(&self, name: &str, labels: &[&str]) -> Vec<f64> {
        let series = self.0.lines().filter_map(|line| line.strip_prefix(name)?.rsplit_once(' '));
        let of_name = series.filter(|(rest, _)| rest.is_empty() || rest.starts_with('{'));
        let chosen = of_name.filter(|(rest, _)| labels.iter().all(|label| rest.contains(label)));
        chosen.map(|(_, value)| value.parse().expect("a number")).collect()
    }

    /// Returns the sum of these values. It is zero if no such series exists.
    fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        self.values(name, labels).iter().sum()
    }

    /// Returns the share of all requests that were answered with a code that begins with `code`.
    fn part_of_requests(&self, code: &str) -> f64 {
        let label = format!("code=\"{code}");
        self.sum("apiserver_request_total", &[&label]) / self.sum("apiserver_request_total", &[])
    }
}

/// A server whose machine fails in three ways, in each while a file exists.
struct Fragile {
    server: Server,
    slow_fsync: PathBuf,
    slow_send: PathBuf,
    wrong_clock: PathBuf,
}

impl Fragile {
    fn start(directory: &DataDir) -> Self {
        let folder = directory.path().with_extension("fragile");
        fs::create_dir_all(&folder).expect("a directory");
        let [source, library] = ["fragile.c", "fragile.so"].map(|name| folder.join(name));
        fs::write(&source, FRAGILE_LIBRARY).expect("a file");
        let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
        assert!(compiled.expect("the C compiler that the build takes").success());
        let variables = ["SLOW_FSYNC", "SLOW_SEND", "WRONG_CLOCK"];
        let files = variables.map(|name| folder.join(name));
        let text = |path: &PathBuf| path.to_str().expect("a path").to_owned();
        let (library, paths) = (text(&library), files.each_ref().map(text));
        let mut environment = vec![("LD_PRELOAD", &*library)];
        environment.extend(variables.into_iter().zip(paths.iter().map(String::as_str)));
        let server = directory.try_start_in(&environment).expect("a server");
        let [slow_fsync, slow_send, wrong_clock] = files;
        Self { server, slow_fsync, slow_send, wrong_clock }
    }
}

#[test]
fn absent_members_cause_the_alerts_about_members_and_leaders() {
    const WRITERS: usize = 16;
    let places = Places::new();
    let [a, b, c] = places.start_all();
    let mut client = a.connect();
    let reachable = |client: &mut Connection| {
        // The alert can fire only if this series exists.
        Metrics::of(client).values("flotilla_member_reachable", &["member=\"c\""]).first().copied()
    };
    let is_missed = |client: &mut Connection| reachable(client).map(|value| fires("FlotillaMemberUnreachable", value));
    until("all members are reachable", || is_missed(&mut client) == Some(false));
    let address = c.credentials().address;
    c.kill();
    assert!(TcpStream::connect(address).is_err(), "Prometheus sets `up` to 0, by which FlotillaDown fires");
    until("c is not reachable", || is_missed(&mut client) == Some(true));
    let leader = if Metrics::of(&mut client).sum("flotilla_group_leader", &[]) > 0.0 { &a } else { &b };
    let is_over = AtomicBool::new(false);
    scope(|scope| {
        let _ends = EndsWith(&is_over);
        for writer in 0..WRITERS {
            let (leader, is_over) = (&leader, &is_over);
            scope.spawn(move || {
                let mut client = leader.connect();
                client.create(CONFIG_MAPS, &config_map(&format!("missed-{writer}"), "0"));
                for number in (1..).take_while(|_| !is_over.load(Ordering::Relaxed)) {
                    client.put(
                        &config_map_path(&format!("missed-{writer}")),
                        &config_map(&format!("missed-{writer}"), &format!("{number}")),
                    );
                }
            });
        }
        // On a busy machine, the other member may lead later.
        let lag_of =
            |server: &Server| Metrics::of(&mut server.connect()).sum("flotilla_group_lag_entries", &["member=\"c\""]);
        let lag = || lag_of(&a).max(lag_of(&b));
        // Ten thousand writes take half a minute on two cores, and longer on slower machines.
        until_within(8 * PATIENCE, "the absent member lacks many entries", || fires("FlotillaReplicaLags", lag()));
    });
    let mut client = a.connect(); // the writes may have taken so long that the idle connection was closed
    until("there is a leader", || {
        !fires("FlotillaNoLeader", Metrics::of(&mut client).sum("flotilla_group_has_leader", &[]))
    });
    b.kill();
    until("there is no leader", || {
        let leaders = Metrics::of(&mut client).values("flotilla_group_has_leader", &[]);
        !leaders.is_empty() && fires("FlotillaNoLeader", leaders.iter().sum())
    });
}

#[test]
fn a_slow_disk_makes_fsyncs_and_writes_slow() {
    let directory = DataDir::new();
    let Fragile { server, slow_fsync: slow, .. } = Fragile::start(&directory);
    let mut client = server.connect();
    let before = Metrics::of(&mut client);
    File::create(&slow).expect("a file");
    for number in 0..3 {
        client.post(CONFIG_MAPS, &config_map(&format!("slow-{number}"), "1")).expect(201);
    }
    fs::remove_file(&slow).expect("a file");
    let after = Metrics::of(&mut client);
    let grown = |name: &str, labels: &[&str]| after.sum(name, labels) - before.sum(name, labels);
    let mean = grown("flotilla_wal_fsync_seconds_total", &[]) / grown("flotilla_wal_fsyncs_total", &[]);
    assert!(fires("FlotillaFsyncSlow", mean), "{mean} s");
    // The 99th percentile is above every bound below which fewer than 99 of 100 writes were.
    let writes = grown("etcd_request_duration_seconds_count", &[]);
    let below = |bound: f64| grown("etcd_request_duration_seconds_bucket", &[&format!("le=\"{bound}\"")]);
    let is_above = |bound: &f64| below(*bound) < 0.99 * writes;
    let percentile = [0.05, 1.0, 1.25, 1.5, 2.0].into_iter().rfind(is_above).expect("a bound");
    assert!(fires("FlotillaWritesSlow", percentile), "above {percentile} s");
}

#[test]
fn threads_that_are_stuck_in_a_call_are_stalled() {
    let directory = DataDir::new();
    let Fragile { server, slow_send: slow, .. } = Fragile::start(&directory);
    let mut client = server.connect();
    let mut stalls = || Metrics::of(&mut client).sum("flotilla_thread_stalls_total", &[]);
    let before = stalls();
    until("threads have stalled", || {
        File::create(&slow).expect("a file");
        server.connect().get("/version");
        fs::remove_file(&slow).expect("a file");
        fires("FlotillaThreadStalls", stalls() - before)
    });
}

#[test]
fn a_wrong_clock_is_off() {
    let directory = DataDir::new();
    let Fragile { server, wrong_clock: wrong, .. } = Fragile::start(&directory);
    let mut client = server.connect();
    let mut offset = || {
        let clock = Metrics::of(&mut client).sum("flotilla_clock_seconds", &[]);
        clock - SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs_f64()
    };
    until("the clock is right", || !fires("FlotillaClockOff", offset().abs()));
    File::create(&wrong).expect("a file");
    until("the clock is off", || fires("FlotillaClockOff", offset().abs()));
}

#[test]
fn a_disk_that_fills_up_is_nearly_full_then_full() {
    let directory = DataDir::new();
    let Some(server) = directory.start_on_small_disk(120 << 20) else { return };
    let mut client = server.connect();
    let mut free = || {
        let metrics = Metrics::of(&mut client);
        metrics.sum("flotilla_disk_free_bytes", &[]) / metrics.sum("flotilla_disk_size_bytes", &[])
    };
    let mut filler = File::create(server.data().join("filler")).expect("a file");
    while filler.write_all(&[1; 65_536]).is_ok() {}
    let part = free();
    assert!(fires("FlotillaDiskNearlyFull", part) && fires("FlotillaDiskFull", part), "{part} is free");
    fs::remove_file(server.data().join("filler")).expect("a file");
    drop(filler);
    until("there is room", || !fires("FlotillaDiskFull", free()));
}

#[test]
fn a_certificate_of_ten_days_ends_soon() {
    let directory = DataDir::new();
    let server = directory.start();
    let pki = server.data().join("pki");
    let ends = |server: &Server| {
        let labels = ["certificate=\"serving\""];
        let metrics = Metrics::of(&mut server.connect());
        metrics.sum("flotilla_certificate_expiration_timestamp_seconds", &labels)
            - metrics.sum("flotilla_clock_seconds", &[])
    };
    assert!(!fires("FlotillaCertificateEndsSoon", ends(&server)));
    let file = |name: &str| pki.join(name).display().to_string();
    fs::write(pki.join("names"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n").expect("a file");
    let openssl = |arguments: &str| {
        let arguments =
            arguments.split(' ').map(|it| if it.contains('.') || it == "names" { file(it) } else { it.into() });
        Command::new("openssl").args(arguments).output().is_ok_and(|output| output.status.success())
    };
    let request = "req -newkey rsa:2048 -nodes -subj /CN=short -keyout short.key -out short.csr";
    let sign = "x509 -req -in short.csr -CA ca.crt -CAkey ca.key -set_serial 77 -days 10 -extfile names -out short.crt";
    if !openssl(request) || !openssl(sign) {
        eprintln!("skipped: openssl issues no certificate");
        return;
    }
    server.kill();
    let server =
        directory.start_with(&["--tls-cert-file", &file("short.crt"), "--tls-private-key-file", &file("short.key")]);
    let seconds = ends(&server);
    assert!(seconds > 0.0 && fires("FlotillaCertificateEndsSoon", seconds), "it ends in {seconds} s");
}

#[test]
fn a_webhook_that_does_not_answer_makes_requests_fail() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    assert!(!fires("FlotillaErrors", Metrics::of(&mut client).part_of_requests("5")));
    let rule = json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]});
    let hook = json!({
        "name": "away.example.com", "rules": [rule], "clientConfig": {"url": "https://127.0.0.1:1/"},
        "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 1,
    });
    let configuration = json!({"metadata": {"name": "away"}, "webhooks": [hook]});
    let configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    client.post(configurations, &configuration).expect(201);
    until("requests fail", || {
        client.post(CONFIG_MAPS, &json!({"metadata": {"generateName": "a-"}}));
        fires("FlotillaErrors", Metrics::of(&mut client).part_of_requests("5"))
    });
}

#[test]
fn requests_without_a_seat_are_refused() {
    let directory = DataDir::new();
    let tokens = directory.path().with_extension("tokens");
    fs::create_dir_all(tokens.parent().expect("a directory")).expect("a directory");
    fs::write(&tokens, "token-of-ann,ann,1\n").expect("a file");
    let file = tokens.to_str().expect("text");
    let flags = ["--token-auth-file", file, "--enable-priority-and-fairness=false", "--max-requests-inflight", "1"];
    let server = directory.start_with(&flags);
    let mut administrator = server.connect();
    let api_group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": {"name": "ann"}, "roleRef": {"apiGroup": api_group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": api_group, "kind": "User", "name": "ann"}],
    });
    administrator.post(&format!("/apis/{api_group}/v1/clusterrolebindings"), &binding).expect(201);
    let get = |client: &mut Connection, path: &str| {
        client.call("GET", path, &[("Authorization", "Bearer token-of-ann")], b"").expect("an answer").status
    };
    let mut client = server.connect_anonymously();
    until("ann may list", || get(&mut client, CONFIG_MAPS) == 200);
    let list = administrator.get(CONFIG_MAPS).expect(200);
    let revision: u64 = list["metadata"]["resourceVersion"].as_str().expect("a revision").parse().expect("a number");
    // A list at a revision that is far ahead waits for that revision, and keeps the only seat meanwhile.
    let later = format!("{CONFIG_MAPS}?resourceVersion={}", revision + (1 << 40));
    until("requests are refused", || {
        scope(|scope| {
            let waiting = scope.spawn(|| get(&mut server.connect_anonymously(), &later));
            while !waiting.is_finished() {
                get(&mut client, CONFIG_MAPS);
            }
        });
        fires("FlotillaRefusals", Metrics::of(&mut administrator).part_of_requests("429"))
    });
    let _ = fs::remove_file(&tokens);
}

#[test]
fn a_low_limit_of_open_files_is_nearly_used_up() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    let metrics = Metrics::of(&mut client);
    let open = metrics.sum("process_open_fds", &[]);
    assert!(!fires("FlotillaOpenFilesNearlyFull", open / metrics.sum("process_max_fds", &[])));
    server.limit_open_files(open as u64 + 4);
    let metrics = Metrics::of(&mut client);
    let part = metrics.sum("process_open_fds", &[]) / metrics.sum("process_max_fds", &[]);
    assert!(fires("FlotillaOpenFilesNearlyFull", part), "{part}");
}

#[test]
fn a_member_with_more_writes_than_it_can_apply_is_late() {
    const WRITERS: usize = 8;
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    let mut unapplied = || {
        let metrics = Metrics::of(&mut client);
        metrics.sum("flotilla_group_commit_index", &[]) - metrics.sum("flotilla_group_applied_index", &[])
    };
    until("nothing is left to be applied", || !fires("FlotillaWatchesLate", unapplied()));
    let ended = AtomicBool::new(false);
    scope(|scope| {
        for writer in 0..WRITERS {
            let (server, ended) = (&server, &ended);
            scope.spawn(move || {
                let mut client = server.connect();
                for number in 0.. {
                    if ended.load(Ordering::Relaxed) {
                        return;
                    }
                    client.post(CONFIG_MAPS, &config_map(&format!("late-{writer}-{number}"), "1"));
                }
            });
        }
        let _ends = EndsWith(&ended);
        until("writes wait to be applied", || fires("FlotillaWatchesLate", unapplied()));
    });
}

/// Sets a flag when it is dropped, even by a panic, so that the threads that check the flag end.
struct EndsWith<'a>(&'a AtomicBool);

impl Drop for EndsWith<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn large_objects_that_change_often_make_the_history_large_and_shorter() {
    const BYTES: usize = 100_000;
    let directory = DataDir::new();
    let server = directory.start_with(&["--history-bytes=1000000"]);
    let mut client = server.connect();
    client.create(CONFIG_MAPS, &config_map("large", "1"));
    let first = client.get(CONFIG_MAPS).json()["metadata"]["resourceVersion"].as_str().expect("a revision").to_owned();
    let mut number = 0;
    until("the history is near its limit, and the first change has left it", || {
        number += 1;
        client
            .put(&format!("{CONFIG_MAPS}/large"), &config_map("large", &format!("{number} {}", "x".repeat(BYTES))))
            .expect(200);
        let metrics = Metrics::of(&mut client);
        let bytes = metrics.sum("flotilla_history_bytes", &["resource=\"configmaps\""]);
        let limit = metrics.sum("flotilla_history_limit_bytes", &[]);
        let watch = client.get(&format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=1&resourceVersion={first}"));
        // The history is trimmed once a second, and later on a busy machine.
        assert!(bytes <= limit + 5.0 * BYTES as f64, "{bytes} of {limit}");
        fires("FlotillaHistoryLarge", bytes / limit) && watch.text().contains("\"code\":410")
    });
}
