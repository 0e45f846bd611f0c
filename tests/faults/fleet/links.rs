//! The links between members: a TCP proxy before each member. The proxy recognizes which member connects, and can
//! withhold bytes.
//!
//! A cut link neither closes nor refuses connections. Bytes do not arrive, in one direction or in both, as when packets
//! are lost. When the link heals, withheld bytes arrive late, or the connections break.

use std::collections::HashSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// How often a thread checks whether a link has healed.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const BUFFER_BYTES: usize = 64 * 1024;

/// From a member, to a member.
pub type Direction = (usize, usize);

#[derive(Default)]
struct State {
    processes: Vec<u32>,
    cut: HashSet<Direction>,
    /// How many times all connections were broken.
    epoch: u64,
}

struct Shared {
    state: Mutex<State>,
    /// The addresses on which members listen.
    targets: Vec<SocketAddr>,
    is_closed: AtomicBool,
}

pub struct Links {
    shared: Arc<Shared>,
    /// The addresses of the proxies, which members connect to.
    addresses: Vec<SocketAddr>,
}

impl Links {
    /// Opens a proxy before each of these addresses.
    pub fn open(targets: &[SocketAddr]) -> Links {
        let state = Mutex::new(State { processes: vec![0; targets.len()], ..State::default() });
        let shared = Arc::new(Shared { state, targets: targets.to_vec(), is_closed: AtomicBool::new(false) });
        let listen = |(target, _): (usize, &SocketAddr)| {
            let address = crate::support::ports::free(1)[0];
            let listener = TcpListener::bind(address).expect("a port for a link");
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.accept(&listener, target));
            address
        };
        let addresses = targets.iter().enumerate().map(listen).collect();
        Links { shared, addresses }
    }

    pub fn address(&self, member: usize) -> SocketAddr {
        self.addresses[member]
    }

    pub fn target(&self, member: usize) -> SocketAddr {
        self.shared.targets[member]
    }

    /// Sets the process id of a member. It identifies which member opened a connection.
    pub fn set_process(&self, member: usize, process: u32) {
        self.shared.state.lock().processes[member] = process;
    }

    pub fn cut(&self, directions: &[Direction]) {
        self.shared.state.lock().cut.extend(directions);
    }

    /// Cuts the links between a member and all others, in both directions.
    pub fn isolate(&self, member: usize) {
        let others = (0..self.addresses.len()).filter(|other| *other != member);
        self.cut(&others.flat_map(|other| [(member, other), (other, member)]).collect::<Vec<_>>());
    }

    /// Heals all links. Withheld bytes then arrive; with `breaks_connections`, all connections are closed instead.
    pub fn heal(&self, breaks_connections: bool) {
        let mut state = self.shared.state.lock();
        state.cut.clear();
        state.epoch += u64::from(breaks_connections);
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::SeqCst);
        for address in &self.addresses {
            let _ = TcpStream::connect(address);
        }
    }
}

impl Shared {
    fn accept(self: &Arc<Self>, listener: &TcpListener, target: usize) {
        for caller in listener.incoming() {
            if self.is_closed.load(Ordering::SeqCst) {
                break;
            }
            let Ok(caller) = caller else { continue };
            let shared = Arc::clone(self);
            std::thread::spawn(move || shared.connect(caller, target));
        }
    }

    fn connect(self: Arc<Self>, caller: TcpStream, target: usize) -> Option<()> {
        let processes = self.state.lock().processes.clone();
        let source = member_of(&caller, &processes)?;
        let epoch = self.state.lock().epoch;
        // A TCP handshake needs both directions.
        self.wait((source, target), epoch)?;
        self.wait((target, source), epoch)?;
        let callee = TcpStream::connect(self.targets[target]).ok()?;
        caller.set_nodelay(true).ok()?;
        callee.set_nodelay(true).ok()?;
        let (back_from, back_to) = (callee.try_clone().ok()?, caller.try_clone().ok()?);
        let back = Arc::clone(&self);
        std::thread::spawn(move || back.pump(back_from, back_to, (target, source), epoch));
        self.pump(caller, callee, (source, target), epoch);
        Some(())
    }

    fn pump(&self, mut from: TcpStream, mut to: TcpStream, direction: Direction, epoch: u64) {
        let mut buffer = vec![0; BUFFER_BYTES];
        // A cut link withholds the end of a connection, just as it withholds bytes.
        while let Ok(length) = from.read(&mut buffer) {
            if self.wait(direction, epoch).is_none() || length == 0 || to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }

    /// Waits until bytes may pass. Returns `None` if the connections of this epoch have been broken, or if all links
    /// are closed.
    fn wait(&self, direction: Direction, epoch: u64) -> Option<()> {
        loop {
            if self.is_closed.load(Ordering::SeqCst) {
                return None;
            }
            let state = self.state.lock();
            if state.epoch != epoch {
                return None;
            }
            if !state.cut.contains(&direction) {
                return Some(());
            }
            drop(state);
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Returns which of these processes opened a connection, by the kernel's list of sockets. Returns `None` if none of
/// them did. Both ports identify the socket: connections to other addresses may have the same port of their own.
fn member_of(caller: &TcpStream, processes: &[u32]) -> Option<usize> {
    let ports = (caller.peer_addr().ok()?.port(), caller.local_addr().ok()?.port());
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    let inode = table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let port = |field: usize| u16::from_str_radix(fields.get(field)?.rsplit(':').next()?, 16).ok();
        ((port(1)?, port(2)?) == ports && *fields.get(3)? == "01").then(|| fields.get(9).copied())?
    })?;
    let name = format!("socket:[{inode}]");
    processes.iter().position(|process| {
        let Ok(files) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
        files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|link| *link == *name))
    })
}
