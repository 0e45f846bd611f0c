//! One member: a server process, and the directory and addresses that it keeps when it is started again.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::disk::Disk;
use super::wires::Wires;
use crate::support::PATIENCE;

const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// How many bytes of a member's standard error a report shows.
const MESSAGES_BYTES_MAX: usize = 4_000;

/// The facts about the cluster that a member needs.
pub struct Peers {
    /// Where this member listens for other members.
    pub listen: SocketAddr,
    /// The names and addresses of all members, including this one.
    pub members: Vec<(String, SocketAddr)>,
    pub pki_dir: PathBuf,
}

pub struct Member {
    number: usize,
    directory: PathBuf,
    address: SocketAddr,
    peers: Option<Peers>,
    child: Option<Child>,
    /// The library that fakes the time, and the file that contains the offset.
    clock: Option<(PathBuf, PathBuf)>,
    /// The member's own disk, if it has one.
    disk: Option<Disk>,
    /// The wires that connect this member, if the fleet uses wires.
    wires: Option<Arc<Wires>>,
    /// Additional flags.
    flags: &'static [&'static str],
}

/// Returns the name of a member in its cluster.
pub fn name(number: usize) -> String {
    format!("m{number}")
}

impl Member {
    pub fn new(number: usize, directory: &Path, address: SocketAddr, peers: Option<Peers>) -> Member {
        let directory = directory.to_owned();
        Member { number, directory, address, peers, child: None, clock: None, disk: None, wires: None, flags: &[] }
    }

    pub fn name(&self) -> String {
        name(self.number)
    }

    pub fn kubeconfig(&self) -> PathBuf {
        let inside = self.data_dir().join("admin.kubeconfig");
        self.disk.as_ref().map_or(inside.clone(), |disk| disk.outside(&inside))
    }

    /// Gives the member its own disk.
    pub fn with_disk(mut self, disk: Disk) -> Member {
        self.disk = Some(disk);
        self
    }

    /// Puts the member in the network namespace at the end of its wire.
    pub fn with_wires(mut self, wires: Arc<Wires>) -> Member {
        self.wires = Some(wires);
        self
    }

    /// Adds flags to the member's command line.
    pub fn with_flags(mut self, flags: &'static [&'static str]) -> Member {
        self.flags = flags;
        self
    }

    /// Returns the member's own disk.
    pub fn disk(&mut self) -> &mut Disk {
        self.disk.as_mut().expect("a disk of its own")
    }

    /// Gives the member its own clock, which a preloaded library fakes.
    pub fn with_clock(mut self, library: &Path) -> Member {
        self.clock = Some((library.to_owned(), self.directory.join(format!("{}.clock", self.name()))));
        self.set_clock(0);
        self
    }

    /// Sets the member's clock to `seconds` ahead of the machine's clock.
    pub fn set_clock(&self, seconds: i32) {
        let (_, file) = self.clock.as_ref().expect("a clock of its own");
        let unfinished = file.with_extension("tmp");
        fs::write(&unfinished, format!("{seconds:+}")).expect("a file");
        fs::rename(&unfinished, file).expect("a file");
    }

    pub fn has_clock(&self) -> bool {
        self.clock.is_some()
    }

    /// Deletes everything that the member has stored.
    pub fn lose_disk(&self) {
        assert!(self.child.is_none(), "{} runs", self.name());
        fs::remove_dir_all(self.data_dir()).expect("a directory");
    }

    /// Runs `flotilla cluster` against this member. Returns whether the command succeeded.
    pub fn administer(&self, arguments: &[&str]) -> bool {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flotilla"));
        command.arg("cluster").args(arguments).args(["--timeout", "10", "--kubeconfig"]).arg(self.kubeconfig());
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("the program can be run").success()
    }

    /// Returns the address under which other members reach this one.
    pub fn peer_address(&self) -> SocketAddr {
        self.peers.as_ref().expect("other members").members[self.number].1
    }

    /// Starts the process and returns its id.
    pub fn start(&mut self) -> u32 {
        assert!(self.child.is_none(), "{} runs already", self.name());
        let messages = File::options().create(true).append(true).open(self.messages_path()).expect("a file");
        let program = env!("CARGO_BIN_EXE_flotilla");
        let mut command = match (&self.disk, &self.wires) {
            (Some(disk), _) => disk.command(program),
            (None, Some(wires)) => wires.command(self.number, program),
            (None, None) => Command::new(program),
        };
        command.args(["serve", "--workers", "1", "--shutdown-grace-seconds", "5"]);
        command.arg("--listen").arg(self.address.to_string()).arg("--data-dir").arg(self.data_dir());
        if let Some(peers) = &self.peers {
            let cluster: Vec<String> = peers.members.iter().map(|(name, at)| format!("{name}={at}")).collect();
            command.arg("--name").arg(self.name()).arg("--peer-listen").arg(peers.listen.to_string());
            command.arg("--initial-cluster").arg(cluster.join(",")).arg("--pki-dir").arg(&peers.pki_dir);
        }
        command.args(self.flags);
        if let Some((library, file)) = &self.clock {
            command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", file);
            // The library leaves the monotonic clock as it is.
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("FAKETIME_CACHE_DURATION", "1");
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(messages);
        let child = command.spawn().expect("the server can be run");
        self.child.insert(child).id()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| child.try_wait().expect("a child").is_none())
    }

    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("a running member");
        child.kill().expect("SIGKILL");
        child.wait().expect("an end");
    }

    pub fn terminate(&mut self) {
        self.signal("TERM");
        let deadline = Instant::now() + PATIENCE;
        let child = self.child.as_mut().expect("a running member");
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                break status;
            }
            assert!(Instant::now() < deadline, "{} does not end: {}", self.name(), self.messages());
            std::thread::sleep(POLL_INTERVAL);
        };
        assert!(status.success(), "{} ended with {status}: {}", self.name(), self.messages());
        self.child = None;
    }

    pub fn signal(&self, signal: &str) {
        let id = self.child.as_ref().expect("a running member").id().to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &id]).status().expect("kill").success());
    }

    /// Returns the end of the process's standard error.
    pub fn messages(&self) -> String {
        let text = fs::read_to_string(self.messages_path()).unwrap_or_default();
        let begin = text.len().saturating_sub(MESSAGES_BYTES_MAX);
        text.get(begin..).map_or_else(|| text.clone(), str::to_owned)
    }

    fn messages_path(&self) -> PathBuf {
        self.directory.join(format!("{}.messages", self.name()))
    }

    fn data_dir(&self) -> PathBuf {
        let directory = self.disk.as_ref().map_or(&*self.directory, Disk::mount_point);
        directory.join(self.name())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
