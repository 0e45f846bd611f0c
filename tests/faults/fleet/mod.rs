//! The control plane under test: members as child processes, with the links between them and their disks.

mod disk;
mod links;
mod member;
mod wires;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustls::ClientConfig;
use serde_json::Value;

use crate::support::{Answer, CONFIG_MAPS, Connection, Credentials, ports};
pub use disk::Disk;
pub use links::{Direction, Links};
use member::{Member, Peers};
pub use wires::{Wires, apart};

/// How long a fleet may take until every member is ready, even on a busy machine.
const READY_TIMEOUT: Duration = Duration::from_secs(180);
/// Only one fleet runs at a time, so that none slows another one down.
static TURN: Mutex<()> = Mutex::new(());
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// The addresses and the credentials of a fleet, for its clients.
#[derive(Clone)]
pub struct Endpoints {
    pub members: Vec<SocketAddr>,
    pub administrator: Arc<ClientConfig>,
}

impl Endpoints {
    /// Sends a request to a member on a new connection. Returns `None` if no answer comes in time.
    pub fn request(&self, member: usize, method: &str, path: &str, body: &str, timeout: Duration) -> Option<Answer> {
        let open = Connection::open_within(self.members[member], &self.administrator, timeout);
        open.ok()?.call(method, path, &[("Content-Type", "application/json")], body.as_bytes()).ok()
    }

    /// Returns whether a member reports that it is ready.
    pub fn is_ready(&self, member: usize) -> bool {
        self.request(member, "GET", "/readyz", "", PROBE_TIMEOUT).is_some_and(|answer| answer.status == 200)
    }
}

/// Creates a ConfigMap. Tries again while the store has no leader, as may happen for a moment on a busy machine.
pub fn create(connection: &mut Connection, object: &Value) {
    let (deadline, mut is_unknown) = (Instant::now() + READY_TIMEOUT, false);
    loop {
        let answer = connection.request("POST", CONFIG_MAPS, "application/json", object.to_string().as_bytes());
        match answer.status {
            201 => return,
            409 if is_unknown => return, // an earlier attempt, whose outcome was unknown, has created it
            503 | 504 => is_unknown |= answer.status == 504,
            _ => panic!("{}", answer.text()),
        }
        assert!(Instant::now() < deadline, "no object can be created: {}", answer.text());
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The addresses of a member.
struct Place {
    /// Where it listens for clients.
    address: SocketAddr,
    /// Where it listens for other members.
    listens: SocketAddr,
    /// Where other members reach it.
    reached: SocketAddr,
}

/// Members and the directory of all their files. The directory is removed in the end, unless the test fails.
pub struct Fleet {
    members: Vec<Member>,
    links: Option<Links>,
    /// The wires that connect the members instead of links, if each member has its own network namespace.
    wires: Option<Arc<Wires>>,
    directory: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Fleet {
    /// Starts members and waits until all are ready.
    pub fn start(size: usize) -> (Fleet, Endpoints) {
        Fleet::start_with(size, |member, _| Ok(member)).expect("nothing that can be missing")
    }

    /// Starts members with additional flags.
    pub fn start_with_flags(size: usize, flags: &'static [&'static str]) -> (Fleet, Endpoints) {
        Fleet::start_with(size, |member, _| Ok(member.with_flags(flags))).expect("nothing that can be missing")
    }

    /// Starts members with additional flags, each with its own clock. Returns `None` on a machine without libfaketime.
    pub fn start_with_clocks(size: usize, flags: &'static [&'static str]) -> Option<(Fleet, Endpoints)> {
        let directories = fs::read_dir("/usr/lib").ok()?.flatten().map(|entry| entry.path());
        let mut libraries = directories.map(|path| path.join("faketime/libfaketimeMT.so.1"));
        let library = libraries.find(|library| library.exists())?;
        Fleet::start_with(size, |member, _| Ok(member.with_flags(flags).with_clock(&library))).ok()
    }

    /// Starts members, each with its own disk.
    ///
    /// # Errors
    /// States why this machine cannot make disks.
    pub fn start_with_disks(size: usize) -> Result<(Fleet, Endpoints), String> {
        Fleet::start_with(size, |member, directory| {
            let disk = Disk::make(directory, &format!("disk-of-{}", member.name()))?;
            Ok(member.with_disk(disk))
        })
    }

    /// Starts members on wires that can lose packets. The test must run in a process that [`apart`] started.
    ///
    /// # Errors
    /// States why this machine cannot make the wires.
    pub fn start_on_wires(size: usize, flags: &'static [&'static str]) -> Result<(Fleet, Endpoints), String> {
        let wires = Arc::new(Wires::lay(size)?);
        let place = |member| Place {
            address: wires.address(member),
            listens: wires.peer_address(member),
            reached: wires.peer_address(member),
        };
        let places: Vec<Place> = (0..size).map(place).collect();
        let equip = |member: Member, _: &Path| Ok(member.with_wires(wires.clone()).with_flags(flags));
        let mut fleet = Fleet::make(&places, equip)?;
        fleet.wires = Some(wires.clone());
        Ok(fleet.start_all(&places))
    }

    fn start_with(
        size: usize,
        equip: impl Fn(Member, &Path) -> Result<Member, String>,
    ) -> Result<(Fleet, Endpoints), String> {
        let links = (size > 1).then(|| Links::open(&ports::free(size)));
        let place = |(number, address)| match &links {
            Some(links) => Place { address, listens: links.target(number), reached: links.address(number) },
            None => Place { address, listens: address, reached: address },
        };
        let places: Vec<Place> = ports::free(size).into_iter().enumerate().map(place).collect();
        let mut fleet = Fleet::make(&places, equip)?;
        fleet.links = links;
        Ok(fleet.start_all(&places))
    }

    /// Makes members without starting them.
    fn make(places: &[Place], equip: impl Fn(Member, &Path) -> Result<Member, String>) -> Result<Fleet, String> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let turn = TURN.lock();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("faults-{}-{number}", std::process::id());
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&directory).expect("a temporary directory");
        let members = places.iter().enumerate().map(|(number, place)| {
            let peers = || Peers {
                listen: place.listens,
                members: places.iter().enumerate().map(|(other, at)| (member::name(other), at.reached)).collect(),
                pki_dir: directory.join("pki"),
            };
            let peers = (places.len() > 1).then(peers);
            equip(Member::new(number, &directory, place.address, peers), &directory)
        });
        let members = members.collect::<Result<Vec<Member>, String>>()?;
        Ok(Fleet { members, links: None, wires: None, directory, _turn: turn })
    }

    fn start_all(mut self, places: &[Place]) -> (Fleet, Endpoints) {
        for number in 0..self.size() {
            self.start_member(number);
        }
        let administrator = self.await_credentials().administrator;
        let members = places.iter().map(|place| place.address).collect();
        let endpoints = Endpoints { members, administrator };
        self.await_ready(&endpoints);
        (self, endpoints)
    }

    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// Returns the links between members. Returns `None` if the fleet has only one member, or uses wires.
    pub fn links(&self) -> Option<&Links> {
        self.links.as_ref()
    }

    /// Returns the wires of the fleet.
    pub fn wires(&self) -> &Wires {
        self.wires.as_ref().expect("a fleet on wires")
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn start_member(&mut self, number: usize) {
        let process = self.members[number].start();
        if let Some(links) = &self.links {
            links.set_process(number, process);
        }
    }

    /// Ends a member with SIGKILL.
    pub fn kill(&mut self, number: usize) {
        self.members[number].kill();
    }

    /// Ends a member with SIGTERM, and waits for its end. Panics unless the process ends with success.
    pub fn terminate(&mut self, number: usize) {
        self.members[number].terminate();
    }

    pub fn has_clocks(&self) -> bool {
        self.members.iter().all(Member::has_clock)
    }

    /// Sets a member's clock to `seconds` ahead of the machine's clock.
    pub fn set_clock(&self, number: usize, seconds: i32) {
        self.members[number].set_clock(seconds);
    }

    /// Returns a member's own disk.
    pub fn disk(&mut self, number: usize) -> &mut Disk {
        self.members[number].disk()
    }

    /// Returns the member that leads the first group. On a busy machine, that group may have no leader for a moment, or
    /// no member answers in time, so this waits until a member knows one. Returns the first member if none ever does.
    pub fn leader(&self, endpoints: &Endpoints) -> usize {
        let ask = |member| {
            let answer = endpoints.request(member, "GET", "/flotilla/v1/cluster", "", PROBE_TIMEOUT)?;
            let cluster: serde_json::Value = serde_json::from_str(&answer.text()).ok()?;
            let name = cluster["groups"][0]["leader"].as_str()?.to_owned();
            (0..self.size()).find(|number| member::name(*number) == name)
        };
        let deadline = Instant::now() + READY_TIMEOUT;
        while self.size() > 1 && Instant::now() < deadline {
            if let Some(leader) = (0..self.size()).find_map(ask) {
                return leader;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        0
    }

    /// Transfers leadership to a member. Returns whether that succeeded.
    pub fn transfer(&self, to: usize) -> bool {
        self.members[to].administer(&["transfer", &member::name(to)])
    }

    /// Drains a member, or ends its drain.
    pub fn drain(&self, number: usize, is_drained: bool) {
        let name = self.members[number].name();
        let arguments: &[&str] = if is_drained { &["drain", &name] } else { &["drain", &name, "--undo"] };
        self.insist(number, arguments);
    }

    /// Divides resources into other numbers of shards.
    pub fn divide(&self, shards: &[&str]) {
        let arguments: Vec<&str> = std::iter::once("shards").chain(shards.iter().copied()).collect();
        self.insist(0, &arguments);
    }

    /// Runs `flotilla cluster` against a member until it succeeds. On a busy machine, the group that decides may have
    /// no leader for a moment, or the change may take longer than the command waits.
    fn insist(&self, number: usize, arguments: &[&str]) {
        let deadline = Instant::now() + READY_TIMEOUT;
        while !self.members[number].administer(arguments) {
            assert!(Instant::now() < deadline, "{arguments:?} fails: {}", self.messages());
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Kills a member and deletes its disk. After some time, starts a new member in its place; with `removes`, removes
    /// the old one from the cluster before that.
    pub fn replace(&mut self, number: usize, after: Duration, removes: bool) {
        let (name, other) = (self.members[number].name(), (number + 1) % self.size());
        self.kill(number);
        self.members[number].lose_disk();
        let deadline = Instant::now() + READY_TIMEOUT;
        let until = |what: &str, arguments: &[&str], members: &[Member]| {
            while !members[other].administer(arguments) {
                assert!(Instant::now() < deadline, "{name} is not {what}: {}", members[other].messages());
                std::thread::sleep(POLL_INTERVAL);
            }
        };
        if removes {
            until("removed", &["remove", &name], &self.members);
        }
        std::thread::sleep(after);
        self.start_member(number);
        let join = format!("{name}={}", self.members[number].peer_address());
        until("admitted", &["join", &join], &self.members);
    }

    /// Suspends a member with SIGSTOP.
    pub fn pause(&self, number: usize) {
        self.members[number].signal("STOP");
    }

    /// Resumes a member with SIGCONT.
    pub fn resume(&self, number: usize) {
        self.members[number].signal("CONT");
    }

    /// Waits until every member reports that it is ready.
    pub fn await_ready(&mut self, endpoints: &Endpoints) {
        let deadline = Instant::now() + READY_TIMEOUT;
        for number in 0..self.size() {
            while !endpoints.is_ready(number) {
                let member = &mut self.members[number];
                assert!(member.is_running(), "member {number} ended: {}", member.messages());
                assert!(Instant::now() < deadline, "member {number} is not ready in time: {}", member.messages());
                std::thread::sleep(POLL_INTERVAL);
            }
        }
    }

    /// Returns the end of each member's standard error, for reports of failures.
    pub fn messages(&self) -> String {
        let of_member = |member: &Member| format!("--- {}\n{}", member.name(), member.messages());
        self.members.iter().map(of_member).collect()
    }

    fn await_credentials(&mut self) -> Credentials {
        let deadline = Instant::now() + READY_TIMEOUT;
        let member = &mut self.members[0];
        while !member.kubeconfig().exists() {
            assert!(member.is_running(), "the first member ended: {}", member.messages());
            assert!(Instant::now() < deadline, "no kubeconfig in time: {}", member.messages());
            std::thread::sleep(POLL_INTERVAL);
        }
        Credentials::read(&member.kubeconfig())
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the members' files are kept in {}", self.directory.display());
            return;
        }
        self.members.clear();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
