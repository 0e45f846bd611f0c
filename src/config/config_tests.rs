use clap::{CommandFactory, FromArgMatches, Parser};

use super::*;
use crate::scratch::Scratch;

#[derive(Parser)]
struct Cli {
    #[arg(long)]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Config,
}

fn load_from(args: &[&str]) -> Result<Config, ConfigError> {
    let matches = Cli::command().try_get_matches_from(std::iter::once(&"flotilla").chain(args)).unwrap();
    let cli = Cli::from_arg_matches(&matches).unwrap();
    load(&cli.settings, &matches, cli.config.as_deref())
}

fn file(name: &str, text: &str) -> (Scratch, PathBuf) {
    let dir = Scratch::new();
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    (dir, path)
}

#[test]
fn defaults_hold_without_flags() {
    let config = load_from(&[]).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:6443");
    assert_eq!(config.service_cluster_ip_range.to_string(), "10.96.0.0/16");
    assert!(config.embedded_controllers);
    assert_eq!(config.audiences(), ["https://kubernetes.default.svc"]);
}

#[test]
fn flags_beat_the_file() {
    let (_dir, path) = file(
        "flags.toml",
        "listen = \"0.0.0.0:1\"\nhistory-seconds = 7\ntls-san = [\"a\", \"b\"]\nlog-format = \"json\"",
    );
    let config = load_from(&["--config", path.to_str().unwrap(), "--listen", "[::]:2", "--embedded-controllers=false"]);
    let config = config.unwrap();
    assert_eq!(config.listen.to_string(), "[::]:2");
    assert_eq!(config.advertised().to_string(), "::1");
    assert_eq!(config.history_seconds, 7);
    assert_eq!(config.tls.tls_san, ["a", "b"]);
    assert_eq!(config.log_format, super::super::LogFormat::Json);
    assert!(!config.embedded_controllers);
}

#[test]
fn wrong_values_are_named() {
    let (_dir, path) = file("unknown.toml", "lissten = \"0.0.0.0:1\"");
    let error = load_from(&["--config", path.to_str().unwrap()]).unwrap_err().to_string();
    assert!(error.contains("lissten"), "{error}");
    let (_dir, path) = file("range.toml", "service-cluster-ip-range = \"10.0.0.1/16\"");
    let error = load_from(&["--config", path.to_str().unwrap()]).unwrap_err().to_string();
    assert!(error.contains("10.0.0.0/16") && error.contains("service-cluster-ip-range"), "{error}");
    let error = load_from(&["--config", "/does/not/exist.toml"]).unwrap_err().to_string();
    assert!(error.contains("/does/not/exist.toml"), "{error}");
    let (_dir, path) = file("timeout.toml", "request-timeout-seconds = 0");
    let error = load_from(&["--config", path.to_str().unwrap()]).unwrap_err().to_string();
    assert!(error.contains("request-timeout-seconds: must be from 1"), "{error}");
    assert!(load_from(&["--min-request-timeout=9999999999"]).is_err());
    assert!(load_from(&["--history-bytes", "0"]).is_err());
    assert!(load_from(&["--history-seconds", "0"]).unwrap_err().to_string().contains("history-seconds"));
}

#[test]
fn the_largest_number_of_shards_decides_the_number_of_groups() {
    let config = load_from(&["--shards", "pods=8,leases=2"]).unwrap();
    assert_eq!((config.shards.to_string().as_str(), config.data_groups()), ("coordination.k8s.io/leases=2,pods=8", 8));
    assert_eq!(load_from(&["--shards", "pods=8", "--groups", "3"]).unwrap().data_groups(), 3);
    assert_eq!(load_from(&[]).unwrap().data_groups(), 0);
    let (_dir, path) = file("shards.toml", "shards = \"apps/deployments=4\"");
    assert_eq!(load_from(&["--config", path.to_str().unwrap()]).unwrap().data_groups(), 4);
    let (_dir, path) = file("no-shards.toml", "shards = \"pods=0\"");
    let error = load_from(&["--config", path.to_str().unwrap()]).unwrap_err().to_string();
    assert!(error.contains("shards") && error.contains("pods"), "{error}");
    for more in [["--groups", "2"].as_slice(), &["--groups", "9", "--shards", "pods=8"]] {
        assert!(load_from(more).unwrap_err().to_string().contains("groups"));
    }
}

#[test]
fn a_server_is_alone_without_an_initial_cluster() {
    let config = load_from(&["--data-dir", "/d"]).unwrap();
    assert_eq!((&config.initial_cluster, config.peer_listen), (&None, None));
    assert_eq!(config.pki_dir(), PathBuf::from("/d/pki"));
    let config = load_from(&["--data-dir", "/d", "--pki-dir", "/p"]).unwrap();
    assert_eq!((config.pki_dir(), config.own_pki_dir()), (PathBuf::from("/p"), PathBuf::from("/d/pki")));
}

#[test]
fn members_need_matching_options() {
    let two = "a=127.0.0.1:7001,b=b.example:7001";
    let (_dir, path) = file("cluster.toml", &format!("name = \"b\"\ninitial-cluster = \"{two}\""));
    let config = load_from(&["--config", path.to_str().unwrap(), "--peer-listen", "0.0.0.0:7001"]).unwrap();
    assert_eq!(config.member_name(), "b");
    assert_eq!(config.initial_cluster.map(|cluster| cluster.to_string()).as_deref(), Some(two));
    for (args, option, part) in [
        (&["--peer-listen", "0.0.0.0:1"][..], "peer-listen", "needs initial-cluster"),
        (&["--name", "a", "--initial-cluster", two], "initial-cluster", "needs peer-listen"),
        (&["--name", "c", "--initial-cluster", two, "--peer-listen", "0.0.0.0:1"], "name", "c is not in"),
        (&["--name", "a", "--initial-cluster", two, "--peer-listen", "0.0.0.0:0"], "peer-listen", "must have a port"),
        (
            &["--name", "a", "--initial-cluster", two, "--peer-listen", "127.0.0.1:6443"],
            "peer-listen",
            "address of the API",
        ),
        (&["--initial-cluster", "dns=h:1", "--peer-listen", "0.0.0.0:1"], "initial-cluster-size", "is needed"),
        (&["--initial-cluster-size", "3"], "initial-cluster-size", "dns=HOST:PORT only"),
        (&["--peer-advertise", "h:1"], "peer-advertise", "dns=HOST:PORT only"),
        (&["--name", "dns"], "name", "cannot be the name"),
        (&["--name", "a/b"], "name", "cannot be the name"),
    ] {
        let error = load_from(args).unwrap_err().to_string();
        assert!(error.contains(&format!("configuration: {option}: ")) && error.contains(part), "{args:?}: {error}");
    }
}

#[test]
fn members_found_by_a_host_name_need_size_and_address() {
    let by_name = |more: &[&str]| {
        let fixed = ["--initial-cluster", "dns=peers:7443", "--peer-listen", "0.0.0.0:7443"];
        load_from(&[&fixed[..], more].concat())
    };
    let config = by_name(&["--initial-cluster-size", "3", "--peer-advertise", "a.peers:7443"]).unwrap();
    assert_eq!((config.initial_cluster_size, config.peer_advertise.as_deref()), (Some(3), Some("a.peers:7443")));
    for (args, option, part) in [
        (&["--initial-cluster-size", "0"][..], "initial-cluster-size", "from 1 to 9"),
        (&["--initial-cluster-size", "3"], "peer-advertise", "is needed"),
        (&["--initial-cluster-size", "3", "--peer-advertise", "here"], "peer-advertise", "is not HOST:PORT"),
    ] {
        let error = by_name(args).unwrap_err().to_string();
        assert!(error.contains(&format!("configuration: {option}: ")) && error.contains(part), "{args:?}: {error}");
    }
}

#[test]
fn unknown_variables_are_reported() {
    let environment = [
        ("FLOTILLA_DATA_DIR", "/d"),
        ("FLOTILLA_CONFIG", "/c"),
        ("FLOTILLA_DATADIR", "/d"),
        ("FLOTILLA_LISTEN_PORT", "6443"),
        ("FLOTILLAS", "3"),
        ("PATH", "/bin"),
        // Kubernetes sets these for the Services `flotilla` and `flotilla-x`.
        ("FLOTILLA_SERVICE_HOST", "10.96.0.9"),
        ("FLOTILLA_SERVICE_PORT_HTTPS", "6443"),
        ("FLOTILLA_PORT", "tcp://10.96.0.9:6443"),
        ("FLOTILLA_PORT_6443_TCP_ADDR", "10.96.0.9"),
        ("FLOTILLA_X_SERVICE_HOST", "10.96.0.8"),
        ("FLOTILLA_X_PORT_6443_TCP", "tcp://10.96.0.8:6443"),
    ];
    let owned = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(super::unrecognized_variables(owned.into_iter()), ["FLOTILLA_DATADIR", "FLOTILLA_LISTEN_PORT"]);
}

#[test]
fn shipped_files_are_valid_configurations() {
    let deploy = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    for (name, members) in [("flotilla.toml", 0), ("flotilla-member.toml", 3), ("compose/member.toml", 3)] {
        let path = deploy.join(name);
        let flags = ["--config", path.to_str().unwrap(), "--name", "a"];
        let flags = if members > 0 { &flags[..] } else { &flags[..2] };
        let config = load_from(flags).unwrap_or_else(|error| panic!("{name}: {error}"));
        let listed = match &config.initial_cluster {
            Some(super::super::InitialCluster::Members(members)) => members.len(),
            _ => 0,
        };
        assert_eq!((listed, config.listen.port()), (members, 6443), "{name}");
    }
}

#[test]
fn options_of_auditing_have_the_same_layers() {
    let (_dir, path) = file("audit.toml", "audit-log-path = \"a\"\naudit-log-batch-max-wait = \"2s\"\nworkers = 3");
    let flags = ["--config", path.to_str().unwrap(), "--audit-log-path", "b", "--audit-log-mode=batch"];
    let config = load_from(&flags).unwrap();
    assert_eq!((config.workers, config.audit.audit_log_path), (3, Some(PathBuf::from("b"))));
    assert_eq!(config.audit.audit_log_batch_max_wait.0.as_secs(), 2);
    assert_eq!(config.audit.audit_webhook_batch_max_wait.to_string(), "30s");
    let (_dir, path) = file("audit-unknown.toml", "audit-lock-path = \"a\"");
    let error = load_from(&["--config", path.to_str().unwrap()]).unwrap_err().to_string();
    assert!(error.contains("audit-lock-path"), "{error}");
    let (_dir, path) = file("audit-wrong.toml", "audit-log-maxage = \"a\"");
    let error = load_from(&["--config", path.to_str().unwrap()]).unwrap_err().to_string();
    assert!(error.contains("audit-wrong.toml: audit-log-maxage"), "{error}");
    for (flags, part) in [
        (&["--audit-log-batch-max-size=0", "--audit-log-mode=batch"][..], "max batch size 0, must be a positive"),
        (&["--audit-log-mode=batch", "--audit-log-batch-throttle-enable"], "throttle QPS 0, must be a positive"),
        (&["--audit-log-truncate-max-event-size=0"], "max event size 0"),
        (&["--audit-log-truncate-max-batch-size=9"], "must be greater than max event size (102400)"),
    ] {
        load_from(flags).expect("the log is off");
        let error = load_from(&[flags, &["--audit-log-path=-"]].concat()).unwrap_err().to_string();
        assert!(error.contains("configuration: audit-log-path: ") && error.contains(part), "{flags:?}: {error}");
    }
}
