//! The servers under comparison: one server, or three members of a cluster whose tables have eight shards.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::scope;
use std::time::Instant;

use regex::Regex;

use super::client::Servers;
use crate::support::{DataDir, PATIENCE, Server, ports};

const NAMES: [&str; 3] = ["a", "b", "c"];
/// The built-in resources that are divided.
const DIVIDED: [&str; 4] = ["configmaps=8", "coordination.k8s.io/leases=8", "events=8", "pods=8"];

/// Running servers, with their directories.
pub struct Members {
    running: Vec<Server>,
    _directories: Vec<DataDir>,
}

impl Members {
    /// Starts one server.
    pub fn one() -> Members {
        let directory = DataDir::new();
        Members { running: vec![directory.start()], _directories: vec![directory] }
    }

    /// Starts three members of a cluster, and divides the tables that scenarios use.
    pub fn three(cases: &Path) -> Members {
        let directories = NAMES.map(|_| DataDir::new());
        let addresses: Vec<SocketAddr> = ports::free(NAMES.len());
        let places: Vec<_> = NAMES.iter().zip(&addresses).map(|(name, address)| format!("{name}={address}")).collect();
        let (places, pki) = (places.join(","), directories[0].path().with_file_name("pki"));
        let (pki, shards) = (pki.display().to_string(), shards(cases));
        let divided = shards.iter().cloned().collect::<Vec<_>>().join(",");
        let start = |member: usize| {
            let listen = addresses[member].to_string();
            let own = ["--name", NAMES[member], "--peer-listen", &*listen, "--initial-cluster", &*places];
            let more = ["--pki-dir", &*pki, "--groups", "8", "--shards", &*divided];
            directories[member].start_with(&[&own[..], &more].concat())
        };
        let running = scope(|scope| {
            let starting = [0, 1, 2].map(|member| scope.spawn(move || start(member)));
            starting.map(|started| started.join().expect("a member"))
        });
        let members = Members { running: running.into(), _directories: directories.into() };
        // Without the division, the comparison would pass without testing several shards.
        let deadline = Instant::now() + PATIENCE;
        loop {
            let undivided: Vec<_> = shards.difference(&members.shards()).cloned().collect();
            if undivided.is_empty() {
                return members;
            }
            // On a busy machine, the group that knows the shards may have no leader for a moment.
            let is_late = Instant::now() > deadline;
            assert!(!is_late, "these resources do not have the configured shards: {undivided:?}");
        }
    }

    /// Returns the division of each resource, according to the cluster.
    fn shards(&self) -> BTreeSet<String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flotilla"));
        command.args(["cluster", "shards", "--kubeconfig"]).arg(self.kubeconfig());
        let output = command.output().expect("the program can be run");
        let text = String::from_utf8_lossy(&output.stdout);
        let columns = text.lines().filter_map(|line| {
            let mut columns = line.split_ascii_whitespace();
            Some(format!("{}={}", columns.next()?, columns.next()?))
        });
        columns.collect()
    }

    pub fn servers(&self) -> Servers {
        let credentials: Vec<_> = self.running.iter().map(Server::credentials).collect();
        Servers {
            addresses: credentials.iter().map(|each| each.address).collect(),
            administrator: credentials[0].administrator.clone(),
            anonymous: credentials[0].anonymous.clone(),
        }
    }

    /// Returns the kubeconfig of the first server.
    pub fn kubeconfig(&self) -> PathBuf {
        self.running[0].data().join("admin.kubeconfig")
    }

    /// Returns the output of each server that does not answer any more. With three members, all steps may agree
    /// although one member has ended.
    pub fn fallen(&self) -> Vec<String> {
        let answers = |server: &&Server| {
            let servers = Servers { addresses: vec![server.credentials().address], ..self.servers() };
            servers.simple("GET", "/livez", None).status == 200
        };
        self.running.iter().filter(|server| !answers(server)).map(Server::messages).collect()
    }
}

/// Returns the resources to divide: some built-in ones, and the custom resources of all scenarios.
fn shards(cases: &Path) -> BTreeSet<String> {
    let definition = Regex::new(r"metadata: \{name: ([a-z]+)\.([a-z.-]+example\.com)\b").expect("a pattern");
    let mut found: BTreeSet<String> = DIVIDED.map(str::to_owned).into();
    for file in super::cases::files(cases) {
        let text = fs::read_to_string(&file).unwrap_or_default();
        found.extend(definition.captures_iter(&text).map(|name| format!("{}/{}=8", &name[2], &name[1])));
    }
    found
}
