//! Tests of the files in `deploy/`: manifests on a server, the chart with helm, and the configuration of HAProxy with
//! HAProxy. Where one of these programs is not installed, its test is skipped.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Connection, Credentials, DataDir, PATIENCE, ports};

fn deploy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(name)
}

/// Returns the output of a program. Prints a message and returns `None` if the program is not installed.
fn run(program: &str, args: &[&str]) -> Option<String> {
    let done = match Command::new(program).args(args).output() {
        Ok(done) => done,
        Err(error) => {
            eprintln!("skipped: {program} cannot be run: {error}");
            return None;
        }
    };
    assert!(done.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    Some(String::from_utf8(done.stdout).expect("text"))
}

/// Splits a file into documents. Returns each with its kind.
fn documents(text: &str) -> Vec<(String, String)> {
    let all = text.split("\n---").map(|document| document.trim_start_matches("---").trim());
    let stated = all.filter(|document| document.lines().any(|line| line.starts_with("kind: ")));
    let kind = |document: &str| {
        let mut lines = document.lines();
        lines.find_map(|line| line.strip_prefix("kind: ")).unwrap_or_default().trim().to_owned()
    };
    stated.map(|document| (kind(document), document.to_owned())).collect()
}

/// Returns the path of the collection in which objects of a kind are created.
fn collection(kind: &str) -> &'static str {
    match kind {
        "Service" => "/api/v1/namespaces/default/services",
        "ConfigMap" => "/api/v1/namespaces/default/configmaps",
        "ServiceAccount" => "/api/v1/namespaces/default/serviceaccounts",
        "PodDisruptionBudget" => "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        "StatefulSet" => "/apis/apps/v1/namespaces/default/statefulsets",
        "NetworkPolicy" => "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
        "Role" => "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
        "RoleBinding" => "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
        "Job" => "/apis/batch/v1/namespaces/default/jobs",
        other => panic!("the path for kind {other} is unknown"),
    }
}

/// Creates all documents with strict field validation. Returns their kinds.
fn apply(client: &mut Connection, text: &str) -> BTreeSet<String> {
    let mut kinds = BTreeSet::new();
    for (kind, document) in documents(text) {
        let path = format!("{}?fieldValidation=Strict", collection(&kind));
        let answer = client.request("POST", &path, "application/yaml", document.as_bytes());
        assert_eq!(answer.status, 201, "{kind}: {}", answer.text());
        kinds.insert(kind);
    }
    kinds
}

#[test]
fn plain_manifests_are_accepted() {
    let directory = DataDir::new();
    let server = directory.start();
    let text = fs::read_to_string(deploy("kubernetes.yaml")).unwrap();
    let kinds = apply(&mut server.connect(), &text);
    for kind in ["Service", "PodDisruptionBudget", "StatefulSet", "NetworkPolicy", "Job"] {
        assert!(kinds.contains(kind), "{kind} is not among {kinds:?}");
    }
}

#[test]
fn plain_manifests_are_those_of_the_chart() {
    let chart = deploy("chart").display().to_string();
    let Some(rendered) = run("helm", &["template", "flotilla", &chart, "--namespace", "flotilla"]) else { return };
    let shipped = fs::read_to_string(deploy("kubernetes.yaml")).unwrap();
    // Different releases of Helm order documents differently.
    let sorted = |text: &str| {
        let mut all = documents(text);
        all.sort();
        all
    };
    assert_eq!(sorted(&shipped), sorted(&rendered), "helm template flotilla deploy/chart --namespace flotilla");
}

#[test]
fn the_chart_is_valid_with_all_options_and_with_one_member() {
    let chart = deploy("chart").display().to_string();
    let Some(_) = run("helm", &["lint", "--strict", &chart]) else { return };
    let directory = DataDir::new();
    let server = directory.start();
    let one = ["--set", "replicas=1", "--set", "pki.existingSecret=mine", "--set", "networkPolicy.enabled=false"];
    let rendered = run("helm", &[&["template", "one", &chart], &one[..]].concat()).expect("helm is installed");
    let kinds = apply(&mut server.connect(), &rendered);
    assert_eq!(kinds, ["Service", "StatefulSet"].map(String::from).into());
    assert!(!rendered.contains("--initial-cluster"), "a single server forms no cluster");

    let all = ["serviceMonitor.enabled=true", "serviceMonitor.tokenSecret=t", "prometheusRule.enabled=true"];
    let all: Vec<&str> = all.iter().flat_map(|setting| ["--set", setting]).collect();
    let rendered = run("helm", &[&["template", "all", &chart], &all[..]].concat()).expect("helm is installed");
    let kinds: Vec<String> = documents(&rendered).into_iter().map(|(kind, _)| kind).collect();
    assert!(kinds.iter().any(|kind| kind == "ServiceMonitor"), "{kinds:?}");
    assert!(kinds.iter().any(|kind| kind == "PrometheusRule"), "{kinds:?}");

    let audit = ["--set-json", "audit.policy={\"rules\":[{\"level\":\"Metadata\"}]}", "--set", "audit.webhookSecret=w"];
    let rendered = run("helm", &[&["template", "audited", &chart], &one[..], &audit[..]].concat()).expect("helm");
    let kinds = apply(&mut server.connect(), &rendered);
    assert_eq!(kinds, ["ConfigMap", "Service", "StatefulSet"].map(String::from).into());
    for part in ["level: Metadata", "checksum/audit", "--audit-log-path=-", "--audit-webhook-config-file"] {
        assert!(rendered.contains(part), "{part} is not in {rendered}");
    }
}

/// A process. It is killed when this value is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn requests_pass_through_haproxy_as_it_is_shipped() {
    let Some(_) = run("haproxy", &["-v"]) else { return };
    let directory = DataDir::new();
    let server = directory.start();
    let [front, dead] = ports::free(2)[..] else { unreachable!("two ports were requested") };
    let credentials = server.credentials();
    let child = Command::new("haproxy")
        .args(["-db", "-f"])
        .arg(deploy("haproxy.cfg"))
        .env("FLOTILLA_BIND", front.to_string())
        .env("FLOTILLA_A", dead.to_string())
        .env("FLOTILLA_B", credentials.address.to_string())
        .env("FLOTILLA_C", dead.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _haproxy = Running(child.expect("haproxy can be run"));
    let through = Credentials { address: front, ..credentials };
    let deadline = Instant::now() + PATIENCE;
    // The client certificate reaches the member, because only an administrator may read Secrets.
    let path = "/api/v1/namespaces/kube-system/secrets";
    loop {
        let answered =
            Connection::open(through.address, &through.administrator).and_then(|mut c| c.call("GET", path, &[], b""));
        match answered {
            Ok(answer) => break assert_eq!(answer.status, 200, "{}", answer.text()),
            Err(error) => assert!(Instant::now() < deadline, "HAProxy reaches no member: {error}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
