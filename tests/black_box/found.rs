//! Servers that find each other by a host name, as in a StatefulSet.
//!
//! They use a hosts file of their own, which is mounted so that only they see it.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use crate::cluster::{read, until, write};
use crate::support::{DataDir, Server};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Three servers that have not started, each with its own address.
struct Found {
    directories: [DataDir; 3],
    port: u16,
    hosts: PathBuf,
}

fn address(member: usize) -> String {
    format!("127.77.0.{}", 11 + member)
}

impl Found {
    fn new() -> Found {
        let directories = [DataDir::new(), DataDir::new(), DataDir::new()];
        let free = TcpListener::bind(format!("{}:0", address(0))).expect("an address of this machine");
        let port = free.local_addr().expect("an address").port();
        let hosts = directories[0].path().with_file_name("hosts");
        Found { directories, port, hosts }
    }

    /// Sets the addresses of the common name to those of these members.
    fn resolve(&self, members: &[usize]) {
        let own = (0..3).map(|member| format!("{} {}.peers.test\n", address(member), NAMES[member]));
        let common = members.iter().map(|member| format!("{} peers.test\n", address(*member)));
        fs::write(&self.hosts, own.chain(common).collect::<String>()).expect("a file");
    }

    /// Starts a member. Returns `None` if this machine does not permit the mount of the hosts file.
    fn begin(&self, member: usize) -> Option<Server> {
        let (port, pki) = (self.port, self.directories[0].path().with_file_name("shared-pki"));
        let flags = [
            ("--name", NAMES[member].to_owned()),
            ("--peer-listen", format!("{}:{port}", address(member))),
            ("--peer-advertise", format!("{}.peers.test:{port}", NAMES[member])),
            ("--initial-cluster", format!("dns=peers.test:{port}")),
            ("--initial-cluster-size", "3".to_owned()),
            ("--pki-dir", pki.display().to_string()),
        ];
        let flags: Vec<&str> = flags.iter().flat_map(|(flag, value)| [*flag, value.as_str()]).collect();
        self.directories[member].begin_with_hosts(&self.hosts, &flags)
    }
}

fn is_ready(server: &Server) -> bool {
    server.connect().get("/readyz").status == 200
}

#[test]
fn servers_find_each_other_by_a_host_name_only_once() {
    let found = Found::new();
    found.resolve(&[0, 1]);
    let Some(servers) = (0..3).map(|member| found.begin(member)).collect::<Option<Vec<Server>>>() else { return };
    sleep(Duration::from_secs(1));
    assert!(!servers.iter().any(is_ready), "two of three members do not form a cluster");
    found.resolve(&[0, 1, 2]);
    until("all are ready", || servers.iter().all(is_ready));
    write(&servers[0], "first");

    found.resolve(&[]);
    let mut servers = servers;
    servers.pop().expect("the last").kill();
    servers.push(found.begin(2).expect("as before"));
    until("the restarted member is ready", || is_ready(&servers[2]));
    read(&servers[2], "first");
}
