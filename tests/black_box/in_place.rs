//! The program under the names kube-apiserver and etcd: the command lines of tools, and authentication and
//! authorization under these command lines.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::called::{Called, Prepared, plain, send};
use crate::support::{Connection, PATIENCE};

/// The command lines of tools, by the tool's name.
fn lines() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut lines: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in include_str!("command_lines.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(tool) => lines.push((tool, Vec::new())),
            None => lines.last_mut().expect("a tool").1.push(line),
        }
    }
    lines
}

fn line_of(tool: &str) -> Vec<&'static str> {
    lines().into_iter().find(|(name, _)| *name == tool).expect("a line").1
}

/// Starts an API server with a tool's command line, but on loopback only.
fn start(prepared: &Prepared, tool: &str, further: &[&str]) -> Called {
    let mut flags = line_of(tool);
    flags.extend(["--bind-address=127.0.0.1", "--data-dir=$D"]);
    flags.extend(further);
    prepared.start("kube-apiserver", &flags)
}

#[test]
fn every_tool_starts_its_api_server() {
    let servers: Vec<&str> = lines().iter().map(|(tool, _)| *tool).filter(|tool| !tool.starts_with("etcd")).collect();
    assert!(servers.len() >= 6, "{servers:?}");
    for tool in servers {
        let prepared = Prepared::new();
        let mut server = start(&prepared, tool, &[]);
        let mut client = prepared.ready(&mut server, "admin");
        assert_eq!(client.get("/healthz").text(), "ok", "{tool}");
        let answer = client.get("/readyz?verbose").text();
        assert!(
            answer.contains("[+]etcd ok") && answer.trim_end().ends_with("readyz check passed"),
            "{tool}: {answer}"
        );
        client.get("/api/v1/namespaces/kube-system").expect(200);
        let anonymous = prepared.connect(None).expect("a connection").get("/healthz").status;
        assert_eq!(anonymous, if ["k0smotron", "test-cmd"].contains(&tool) { 401 } else { 200 }, "{tool}");
        if tool == "test-cmd" {
            assert_eq!(client.get("/version").expect(200)["gitVersion"], "v1.36.3-custom");
        }
        let issuer = client.get("/.well-known/openid-configuration").expect(200);
        if tool == "k0smotron" {
            assert_eq!(issuer["jwks_uri"], "https://kubernetes.default.svc/openid/v1/jwks");
        }
        let messages = server.messages();
        assert!(messages.contains("no etcd is used"), "{tool}: {messages}");
        assert!(server.terminate().success(), "{tool}");
    }
}

#[test]
fn every_tool_starts_its_etcd() {
    for (tool, flags) in lines().into_iter().filter(|(tool, _)| tool.starts_with("etcd")) {
        let prepared = Prepared::new();
        let mut etcd = prepared.start("etcd", &flags);
        let health = etcd.until(|| plain(prepared.ports[1], "/health"));
        assert!(health.starts_with("HTTP/1.1 200") && health.contains("\"health\":\"true\""), "{tool}: {health}");
        let version = plain(prepared.ports[1], "/version").expect("an answer");
        assert!(version.contains("\"etcdserver\":\"3.6."), "{tool}: {version}");
        let other = plain(prepared.ports[1], "/v2/keys").expect("an answer");
        assert!(other.starts_with("HTTP/1.1 404") && other.contains("no etcd"), "{tool}: {other}");
        assert!(etcd.messages().contains("no etcd"), "{tool}");
        assert!(!prepared.data().exists(), "{tool}: no data is stored");
        assert!(etcd.terminate().success(), "{tool}");
    }
}

/// Returns the arguments of the container in a static pod's manifest, without the program's name.
fn arguments_of(manifest: &str) -> Vec<String> {
    let lines = manifest.lines().map(str::trim);
    let command = lines.skip_while(|line| *line != "- command:").skip(1).map_while(|line| line.strip_prefix("- "));
    command.skip(1).map(str::to_owned).collect()
}

#[test]
fn the_static_pod_of_kubeadm_starts() {
    let written = include_str!("../../deploy/kubeadm/kube-apiserver.yaml");
    let given = arguments_of(written);
    let recorded = line_of("kubeadm");
    let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
    let names: Vec<String> = given.iter().map(|flag| name(flag)).filter(|name| name != "--data-dir").collect();
    assert_eq!(names, recorded.iter().map(|flag| name(flag)).collect::<Vec<_>>());
    let prepared = Prepared::new();
    // The test has its own files for the paths that the manifest names.
    let places = [
        ("/etc/kubernetes/pki/ca.crt", "$C/client-cert-auth-ca.crt"),
        ("/etc/kubernetes/pki/apiserver-kubelet-client.", "$C/admin."),
        ("/etc/kubernetes/pki/sa.key", "$C/sa-signer.key"),
        ("/etc/kubernetes/pki/", "$C/"),
        ("--secure-port=6443", "--secure-port=$S"),
        ("/var/lib/flotilla", "$D"),
    ];
    let here = |flag: &String| places.iter().fold(flag.clone(), |flag, (there, here)| flag.replace(there, here));
    let flags: Vec<String> = given.iter().map(here).collect();
    let mut server = prepared.start("kube-apiserver", &flags.iter().map(String::as_str).collect::<Vec<_>>());
    let mut client = prepared.ready(&mut server, "admin");
    client.get("/api/v1/namespaces/kube-system").expect(200);
    server.until(|| {
        let endpoints = client.get("/api/v1/namespaces/default/endpoints/kubernetes");
        (endpoints.status == 200 && endpoints.json()["subsets"][0]["addresses"][0]["ip"] == "192.0.2.2").then_some(())
    });
    for probe in ["path: /livez", "path: /readyz"] {
        assert!(written.contains(probe), "{probe}");
        let path = probe.trim_start_matches("path: ");
        assert_eq!(prepared.connect(None).expect("a connection").get(path).status, 200, "{path}");
    }
    assert!(server.terminate().success());
}

#[test]
fn data_is_stored_next_to_the_certificates_by_default() {
    let prepared = Prepared::new();
    let mut server = prepared.start("kube-apiserver", &line_of("envtest"));
    let mut client = prepared.ready(&mut server, "admin");
    client.post("/api/v1/namespaces/default/configmaps", &json!({"metadata": {"name": "kept"}})).expect(201);
    assert!(server.messages().contains(&prepared.certs().join("flotilla").display().to_string()));
    assert!(server.terminate().success());
    assert!(prepared.certs().join("flotilla").join("wal").is_dir());
    let mut server = prepared.start("kube-apiserver", &line_of("envtest"));
    let mut client = prepared.ready(&mut server, "admin");
    client.get("/api/v1/namespaces/default/configmaps/kept").expect(200);
}

#[test]
fn a_missing_certificate_is_generated() {
    let prepared = Prepared::new();
    let certs = prepared.certs();
    for file in ["apiserver.crt", "apiserver.key"] {
        std::fs::remove_file(certs.join(file)).expect("a file");
    }
    let server = &mut start(&prepared, "envtest", &[]);
    server.until(|| certs.join("apiserver.key").exists().then_some(()));
    server.until(|| certs.join("apiserver.crt").exists().then_some(()));
}

/// Starts a program as the child of a shell, waits until `is_up` holds, kills the shell, and waits until the program
/// has ended, too.
fn end_with_shell(program: Command, is_up: impl Fn() -> bool) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$@\" & wait", "sh"]).arg(program.get_program()).args(program.get_args());
    shell.stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped()).env("FLOTILLA_END_WITH_PARENT", "true");
    let mut shell = shell.spawn().expect("sh can be run");
    let deadline = Instant::now() + PATIENCE;
    while !is_up() {
        assert!(Instant::now() < deadline, "the program does not answer");
        std::thread::sleep(Duration::from_millis(10));
    }
    shell.kill().expect("a child");
    shell.wait().expect("a child");
    let (sender, ended) = std::sync::mpsc::channel();
    let mut output = shell.stdout.take().expect("a pipe");
    // The pipe ends when no process has its other end open.
    std::thread::spawn(move || sender.send(output.read_to_end(&mut Vec::new())));
    assert!(ended.recv_timeout(PATIENCE).is_ok(), "the program runs on without its parent");
}

#[test]
fn a_server_ends_with_its_parent_process() {
    let prepared = Prepared::new();
    end_with_shell(prepared.command("kube-apiserver", &line_of("envtest")), || {
        prepared.connect(None).is_ok_and(|mut connection| connection.get("/readyz").status == 200)
    });
    // A server can start with the files that the ended one wrote: they are complete.
    let mut server = prepared.start("kube-apiserver", &line_of("envtest"));
    prepared.ready(&mut server, "admin");
    assert!(server.terminate().success());
    let (_, flags) = lines().into_iter().find(|(tool, _)| tool.starts_with("etcd")).expect("a line");
    end_with_shell(prepared.command("etcd", &flags), || plain(prepared.ports[1], "/health").is_some());
}

#[test]
fn a_server_outlives_the_thread_that_started_it() {
    let prepared = Prepared::new();
    let flags = [line_of("envtest"), vec!["--end-with-parent"]].concat();
    let mut server = std::thread::scope(|scope| {
        let started = scope.spawn(|| prepared.start("kube-apiserver", &flags));
        started.join().expect("a server")
    });
    let mut client = prepared.ready(&mut server, "admin");
    client.get("/api/v1/namespaces/kube-system").expect(200);
    assert!(!server.messages().contains("the end of the parent"));
    assert!(server.terminate().success());
}

#[test]
fn help_version_and_misuse() {
    let prepared = Prepared::new();
    let says = |name: &str, flags: &[&str]| {
        let output = prepared.output(name, flags);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, out, _) = says("kube-apiserver", &["--help"]);
    assert_eq!(code, Some(0));
    for part in ["Secure serving flags:", "--etcd-servers strings", "-v, --v Level", "Misc flags:"] {
        assert!(out.contains(part), "{part}");
    }
    assert!(!out.lines().any(|line| line.trim_start().starts_with("--insecure-port")));
    let (code, out, _) = says("kube-apiserver", &["--version"]);
    assert!(code == Some(0) && out.starts_with("Kubernetes v1.36.3+flotilla"), "{out}");
    for (flag, part) in [
        ("--nope", "Error: unknown flag: --nope"),
        ("--secure-port=abc", "Error: invalid argument \"abc\" for \"--secure-port\" flag: strconv.ParseInt"),
        ("--authorization-mode=Webhook", "authorization-mode Webhook's authorization config file not passed"),
        ("--advertise-address=nowhere", "failed to parse IP"),
        ("--runtime-config=foo/v1=true", "unknown api groups foo/v1"),
        ("--runtime-config=apps/v7=true", "group version apps/v7 that has not been registered"),
        (
            "--runtime-config=api/all=false --enable-priority-and-fairness=false",
            "Error: invalid runtime-config with only api/all=false",
        ),
        (
            "--runtime-config=flowcontrol.apiserver.k8s.io/v1=false",
            "--runtime-config=flowcontrol.apiserver.k8s.io/v1=false conflicts with --enable-priority-and-fairness=true",
        ),
    ] {
        let (code, _, err) = says("kube-apiserver", &flag.split(' ').collect::<Vec<_>>());
        assert!(code == Some(1) && err.contains(part), "{flag}: {code:?} {err}");
    }
    let (code, out, _) = says("etcd", &["--help"]);
    assert!(code == Some(0) && out.contains("--unsafe-no-fsync"), "{out}");
    let (code, _, err) = says("etcd", &["--nope"]);
    assert!(code == Some(2) && err.contains("flag provided but not defined: -nope"), "{err}");
    let (code, _, err) = says("etcdctl", &["snapshot", "save", "/x"]);
    assert!(code == Some(1) && err.contains("flotilla backup"), "{err}");
    let (code, out, _) = says("flotilla", &["kube-apiserver", "--version"]);
    assert!(code == Some(0) && out.starts_with("Kubernetes v1.36.3+flotilla"), "{out}");
}

#[test]
fn a_server_reports_the_version_that_it_is_given() {
    let own = env!("CARGO_PKG_VERSION");
    for version in ["v1.36.3-custom".to_owned(), format!("v1.36.3+flotilla.{own}-custom")] {
        let prepared = Prepared::new();
        let mut server = start(&prepared, "envtest", &[&format!("--version={version}")]);
        let mut client = prepared.ready(&mut server, "admin");
        let reported = client.get("/version").expect(200);
        assert_eq!(reported["gitVersion"], version);
        assert_eq!((&reported["major"], &reported["minor"]), (&json!("1"), &json!("36")));
    }
}

/// Returns the status and the user of a SelfSubjectReview.
fn who(client: &mut Connection, headers: &[(&str, &str)]) -> (u16, Value) {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).to_string();
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let answer = send(client, "POST", path, headers, &review);
    (answer.status, answer.json()["status"]["userInfo"].clone())
}

#[test]
fn front_proxies_name_the_user() {
    let prepared = Prepared::new();
    let mut server = start(&prepared, "kubeadm", &[]);
    let mut admin = prepared.ready(&mut server, "admin");
    let headers = [
        ("X-Remote-User", "ann"),
        ("X-Remote-Group", "dev"),
        ("X-Remote-Group", "ops"),
        ("X-Remote-Extra-Acme.com%2Fproject", "one"),
    ];
    let mut proxy = prepared.connect(Some("front-proxy-client")).expect("a connection");
    let (status, user) = who(&mut proxy, &headers);
    assert_eq!(status, 201);
    assert_eq!(user["username"], "ann");
    assert_eq!(user["groups"], json!(["dev", "ops", "system:authenticated"]));
    assert_eq!(user["extra"], json!({"acme.com/project": ["one"]}));
    assert_eq!(who(&mut proxy, &[]).0, 401, "a proxy's certificate alone identifies no user");
    let mut other = prepared.connect(Some("front-proxy-other")).expect("a connection");
    assert_eq!(who(&mut other, &headers).0, 401, "the proxy's name is not allowed");
    let (status, user) = who(&mut admin, &headers);
    assert_eq!((status, &user["username"]), (201, &json!("admin")), "headers of a client that is no proxy are ignored");
    let mut nobody = prepared.connect(None).expect("a connection");
    let headers = [("X-Remote-User", "admin"), ("X-Remote-Group", "system:masters")];
    assert_eq!(send(&mut nobody, "GET", "/api/v1/secrets", &headers, "").status, 403);
    let config = admin.get("/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication").expect(200);
    assert_eq!(config["data"]["requestheader-allowed-names"], "[\"front-proxy-client\"]");
}

#[test]
fn bootstrap_tokens_are_credentials() {
    let prepared = Prepared::new();
    let mut server = start(&prepared, "kubeadm", &[]);
    let mut admin = prepared.ready(&mut server, "admin");
    let bearer = [("Authorization", "Bearer abcdef.0123456789abcdef")];
    let mut nobody = prepared.connect(None).expect("a connection");
    assert_eq!(who(&mut nobody, &bearer).0, 401);
    let secrets = "/api/v1/namespaces/kube-system/secrets";
    let data = json!({
        "token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
        "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token", "expiration": "2099-01-01T00:00:00Z",
    });
    let secret = json!({
        "metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token", "stringData": data,
    });
    admin.post(secrets, &secret).expect(201);
    let (status, user) = who(&mut nobody, &bearer);
    assert_eq!((status, &user["username"]), (201, &json!("system:bootstrap:abcdef")));
    let groups = ["system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token", "system:authenticated"];
    assert_eq!(user["groups"], json!(groups));
    assert_eq!(who(&mut nobody, &[("Authorization", "Bearer abcdef.0123456789abcdee")]).0, 401);
    let path = format!("{secrets}/bootstrap-token-abcdef");
    for change in [
        json!({"stringData": {"expiration": "2001-01-01T00:00:00Z"}}),
        json!({"stringData": {"expiration": "2099-01-01T00:00:00Z", "usage-bootstrap-authentication": "false"}}),
    ] {
        assert_eq!(send(&mut admin, "PATCH", &path, &[], &change.to_string()).status, 200);
        assert_eq!(who(&mut nobody, &bearer).0, 401, "{change}");
    }
}

#[test]
fn bootstrap_tokens_are_refused_unless_enabled() {
    let prepared = Prepared::new();
    let mut server = start(&prepared, "kubeadm", &["--enable-bootstrap-token-auth=false"]);
    let mut admin = prepared.ready(&mut server, "admin");
    let data = json!({
        "token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
    });
    let secret = json!({
        "metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token", "stringData": data,
    });
    admin.post("/api/v1/namespaces/kube-system/secrets", &secret).expect(201);
    let mut nobody = prepared.connect(None).expect("a connection");
    assert_eq!(who(&mut nobody, &[("Authorization", "Bearer abcdef.0123456789abcdef")]).0, 401);
}

#[test]
fn apis_can_be_disabled() {
    let prepared = Prepared::new();
    let off = "--runtime-config=batch/v1=false,autoscaling/v1=false,apps/v1/daemonsets=false,storagemigration.k8s.io/v1beta1=true";
    let mut server = start(&prepared, "kubeadm", &[off]);
    let mut admin = prepared.ready(&mut server, "admin");
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    for path in [jobs, "/apis/batch/v1", "/apis/batch", "/apis/batch/v7/x"] {
        let answer = admin.get(path);
        assert_eq!((answer.status, answer.text().trim_end()), (404, "404 page not found"), "{path}");
    }
    for path in ["/apis/autoscaling/v1", "/apis/autoscaling/v1/horizontalpodautoscalers", "/apis/apps/v1/daemonsets"] {
        assert_eq!(
            admin.get(path).expect(404)["message"],
            "the server could not find the requested resource",
            "{path}"
        );
    }
    assert_eq!(send(&mut admin, "POST", jobs, &[], "{\"metadata\": {\"name\": \"j\"}}").status, 404);
    for path in ["/apis/apps/v1/deployments", "/apis/autoscaling/v2/horizontalpodautoscalers", "/api/v1/pods"] {
        admin.get(path).expect(200);
    }
    let discovered = admin.get("/apis").expect(200).to_string();
    assert!(
        !discovered.contains("\"batch\"")
            && discovered.contains("autoscaling/v2")
            && !discovered.contains("autoscaling/v1"),
        "{discovered}"
    );
    let discovered = admin.get("/apis/apps/v1").expect(200).to_string();
    assert!(discovered.contains("\"deployments\"") && !discovered.contains("daemonsets"), "{discovered}");
    let documents = admin.get("/openapi/v3").expect(200);
    let paths = documents["paths"].as_object().expect("paths");
    assert!(!paths.contains_key("apis/batch") && !paths.contains_key("apis/batch/v1"), "{paths:?}");
    assert!(paths.contains_key("apis/autoscaling/v2") && !paths.contains_key("apis/autoscaling/v1"), "{paths:?}");
    let services = admin.get("/apis/apiregistration.k8s.io/v1/apiservices").expect(200).to_string();
    assert!(services.contains("v2.autoscaling") && !services.contains("v1.batch"), "{services}");
    assert!(server.messages().contains("--runtime-config=storagemigration.k8s.io/v1beta1"), "{}", server.messages());
    assert!(server.terminate().success());
}

#[test]
fn pods_are_privileged_only_if_the_flag_allows_it() {
    let privileged = json!({"privileged": true});
    let pod = json!({
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i", "securityContext": privileged}]},
    });
    let process = json!({
        "metadata": {"name": "w"},
        "spec": {
            "hostNetwork": true, "os": {"name": "windows"}, "containers": [{"name": "c", "image": "i"}],
            "securityContext": {"windowsOptions": {"hostProcess": true}},
        },
    });
    let pods = "/api/v1/namespaces/default/pods";
    for (allowed, code) in [("false", 422), ("true", 201)] {
        let prepared = Prepared::new();
        let mut server = start(&prepared, "envtest", &[&format!("--allow-privileged={allowed}")]);
        let mut admin = prepared.ready(&mut server, "admin");
        for (pod, why) in [
            (
                &pod,
                "Pod \"p\" is invalid: spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster \
                 policy",
            ),
            (
                &process,
                "Pod \"w\" is invalid: spec: Forbidden: hostProcess containers are disallowed by cluster policy",
            ),
        ] {
            let answer = send(&mut admin, "POST", pods, &[], &pod.to_string());
            assert_eq!(answer.status, code, "{}", answer.text());
            if code == 422 {
                assert_eq!(answer.json()["message"], why);
            }
        }
    }
}

/// Returns the message of a refused request.
fn refused(client: &mut Connection, method: &str, path: &str, body: &Value) -> String {
    let answer = send(client, method, path, &[], &body.to_string());
    assert_eq!(answer.status, 403, "{method} {path}: {}", answer.text());
    answer.json()["message"].as_str().unwrap_or_default().to_owned()
}

fn mirror_pod(node: &str, uid: &str) -> Value {
    json!({
        "metadata": {
            "name": "static", "annotations": {"kubernetes.io/config.mirror": "x"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": true}],
        },
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
    })
}

#[test]
fn nodes_may_change_only_their_own_objects() {
    let prepared = Prepared::new();
    prepared.admit("kubelet", "system:node:n1", &["system:nodes"]);
    let mut server = start(&prepared, "kubeadm", &[]);
    let mut admin = prepared.ready(&mut server, "admin");
    let mut node = prepared.connect(Some("kubelet")).expect("a connection");
    let (nodes, pods) = ("/api/v1/nodes", "/api/v1/namespaces/default/pods");
    let labelled = json!({"metadata": {"name": "n1", "labels": {"node-restriction.kubernetes.io/a": "1"}}});
    assert_eq!(
        refused(&mut node, "POST", nodes, &labelled),
        "nodes \"n1\" is forbidden: node \"n1\" is not allowed to set the following labels: \
         node-restriction.kubernetes.io/a"
    );
    let other = json!({"metadata": {"name": "n2"}});
    assert_eq!(
        refused(&mut node, "POST", nodes, &other),
        "nodes \"n2\" is forbidden: node \"n1\" is not allowed to modify node \"n2\""
    );
    let own = json!({"metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "n1"}}});
    let made = node.post(nodes, &own).expect(201);
    let path = "/api/v1/nodes/n1";
    let taints = json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}});
    let why = refused(&mut node, "PATCH", path, &taints);
    assert_eq!(why, "nodes \"n1\" is forbidden: node \"n1\" is not allowed to modify taints");
    let role = json!({"metadata": {"labels": {"node-role.kubernetes.io/x": ""}}});
    let why = refused(&mut node, "PATCH", &format!("{path}/status"), &role);
    assert_eq!(why, "nodes \"n1\" is forbidden: is not allowed to modify labels: node-role.kubernetes.io/x");
    assert_eq!(send(&mut node, "PATCH", path, &[], "{\"metadata\":{\"labels\":{\"mine\":\"1\"}}}").status, 200);

    let plain = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let why = refused(&mut node, "POST", pods, &plain);
    assert!(why.contains("node \"n1\" can only create mirror pods"), "{why}");
    let uid = made["metadata"]["uid"].as_str().expect("a UID");
    let why = refused(&mut node, "POST", pods, &mirror_pod("n1", "other"));
    assert!(why.contains("node n1 UID mismatch: expected other got "), "{why}");
    node.post(pods, &mirror_pod("n1", uid)).expect(201);
    let mut elsewhere = plain.clone();
    elsewhere["spec"]["nodeName"] = "n2".into();
    admin.post(pods, &elsewhere).expect(201);
    let why = refused(&mut node, "DELETE", &format!("{pods}/p"), &json!({}));
    assert!(why.ends_with("node \"n1\" can only delete pods with spec.nodeName set to itself"), "{why}");
    let status = json!({"status": {"phase": "Running"}});
    let why = refused(&mut node, "PATCH", &format!("{pods}/p/status"), &status);
    assert!(why.ends_with("node \"n1\" can only update pod status for pods with spec.nodeName set to itself"), "{why}");
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    let why = refused(&mut node, "POST", &format!("{pods}/p/eviction"), &eviction);
    assert!(why.ends_with("node n1 can only evict pods with spec.nodeName set to itself"), "{why}");
    assert_eq!(send(&mut node, "PATCH", &format!("{pods}/static/status"), &[], &status.to_string()).status, 200);
    let gone = send(&mut node, "DELETE", &format!("{pods}/static?gracePeriodSeconds=0"), &[], "").status;
    assert_eq!(gone, 200);
    // Users other than nodes have no such restriction.
    assert_eq!(send(&mut admin, "PATCH", path, &[], &taints.to_string()).status, 200);
}
