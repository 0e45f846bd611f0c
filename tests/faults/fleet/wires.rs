//! Wires that lose packets: each member has its own network namespace, behind a router that can drop packets.
//!
//! This needs `ip`, and root to make network namespaces. The router is the namespace of the process that makes the
//! wires. It must not be the machine's own namespace, so [`apart`] starts the test in a new one. Packets between
//! clients in that namespace and members are never lost.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, Stdio};

use parking_lot::Mutex;

use super::links::Direction;

/// The ports on which members listen for clients and for each other.
const PORT: u16 = 6443;
const PEER_PORT: u16 = 7443;
/// The environment variable that marks the process that [`apart`] starts.
const IS_APART: &str = "FLOTILLA_FAULT_APART";
/// The priority of routing rules that drop packets. It is lower than that of the rule for packets to the router itself.
const LOST: u32 = 100;

/// Runs a test of this program in a new network namespace. Returns `true` in the process that is already in one; that
/// process carries out the test. Returns `false` once that process has succeeded.
///
/// # Errors
/// States why this machine cannot make a network namespace.
pub fn apart(test: &str) -> Result<bool, String> {
    if std::env::var_os(IS_APART).is_some() {
        return Ok(true);
    }
    run("unshare", &["--net", "ip", "link", "set", "lo", "up"])?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let _turn = super::TURN.lock();
    let mut command = Command::new("unshare");
    command.arg("--net").arg(program).args(["--exact", test, "--include-ignored", "--nocapture"]);
    let output = command.env(IS_APART, "1").output().map_err(|error| error.to_string())?;
    print!("{}", String::from_utf8_lossy(&output.stdout));
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{test} fails in a network namespace of its own");
    Ok(false)
}

/// The wires of all members. They are removed when this value is dropped.
pub struct Wires {
    /// A process for each member, which keeps the member's namespace until its standard input is closed.
    holders: Vec<(Child, ChildStdin)>,
    lost: Mutex<BTreeSet<Direction>>,
}

impl Wires {
    /// Connects this namespace to `size` new ones.
    ///
    /// # Errors
    /// States which command failed, and why.
    pub fn lay(size: usize) -> Result<Wires, String> {
        run("ip", &["link", "set", "lo", "up"])?;
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").map_err(|error| error.to_string())?;
        let mut wires = Wires { holders: Vec::new(), lost: Mutex::default() };
        for member in 0..size {
            wires.lay_to(member)?;
        }
        Ok(wires)
    }

    fn lay_to(&mut self, member: usize) -> Result<(), String> {
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", "echo there && read -r end"]);
        let mut holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(|e| e.to_string())?;
        let (input, output) = (holder.stdin.take().expect("a pipe"), holder.stdout.take().expect("a pipe"));
        let is_there = BufReader::new(output).read_line(&mut String::new());
        is_there.map_err(|error| error.to_string())?;
        let id = holder.id();
        self.holders.push((holder, input));
        let (wire, near, far) = (wire(member), format!("10.91.{member}.1"), format!("10.91.{member}.2"));
        let router = format!("link add {wire} type veth peer name wire netns {id}\naddr add {near}/24 dev {wire}\n");
        batch(None, &format!("{router}link set {wire} up\n"))?;
        let member = format!("addr add {far}/24 dev wire\nlink set lo up\nlink set wire up\n");
        batch(Some(id), &format!("{member}route add default via {near}\n"))
    }

    /// Returns the address on which a member listens for clients.
    pub fn address(&self, member: usize) -> SocketAddr {
        address(member, PORT)
    }

    /// Returns the address on which a member listens for other members.
    pub fn peer_address(&self, member: usize) -> SocketAddr {
        address(member, PEER_PORT)
    }

    /// Returns a command that runs a program in a member's namespace.
    pub fn command(&self, member: usize, program: &str) -> Command {
        inside(self.holders[member].0.id(), program)
    }

    /// From now on, drops all packets in these directions, and no others.
    pub fn lose(&self, directions: impl IntoIterator<Item = Direction>) {
        let mut lost = self.lost.lock();
        let next: BTreeSet<Direction> = directions.into_iter().collect();
        let rule = |order: &str, (from, to): &Direction| {
            format!("rule {order} pref {LOST} iif {} to {} blackhole\n", wire(*from), address(*to, 0).ip())
        };
        let begun = next.difference(&lost).map(|direction| rule("add", direction));
        let ended = lost.difference(&next).map(|direction| rule("del", direction));
        let orders: String = begun.chain(ended).collect();
        batch(None, &orders).expect("rules of this namespace");
        *lost = next;
    }
}

impl Drop for Wires {
    fn drop(&mut self) {
        for (mut holder, input) in self.holders.drain(..) {
            drop(input);
            let _ = holder.wait();
        }
    }
}

/// Returns the name of the router's end of a member's wire.
fn wire(member: usize) -> String {
    format!("wire{member}")
}

fn address(member: usize, port: u16) -> SocketAddr {
    let member = u8::try_from(member).expect("few members");
    SocketAddr::from(([10, 91, member, 2], port))
}

/// Returns a command that runs a program in the network namespace of a process.
fn inside(process: u32, program: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/proc/{process}/ns/net")).arg("--").arg(program);
    command
}

/// Runs `ip` with these commands, one per line, here or in the network namespace of a process.
fn batch(process: Option<u32>, orders: &str) -> Result<(), String> {
    let mut command = process.map_or_else(|| Command::new("ip"), |process| inside(process, "ip"));
    let command = command.args(["-batch", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let written = child.stdin.take().expect("a pipe").write_all(orders.as_bytes());
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    written.map_err(|error| error.to_string())?;
    succeeded(&output)
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    succeeded(&output)
}

fn succeeded(output: &std::process::Output) -> Result<(), String> {
    let why = || String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
    output.status.success().then_some(()).ok_or_else(why)
}
