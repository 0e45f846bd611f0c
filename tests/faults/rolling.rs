//! A rolling restart as the documentation describes it, while clients use a load balancer. One test plays the load
//! balancer itself; the other one runs HAProxy with the configuration in `deploy/`.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::fleet::{Endpoints, Fleet};
use crate::support::{Answer, CONFIG_MAPS, Connection, PATIENCE, config_map, config_map_path, noticed, ports};

/// Flags: how long members continue to serve after SIGTERM, and several shards.
const DELAY: &[&str] = &["--shutdown-delay-seconds", "2", "--shards", "configmaps=8"];
/// The same with HAProxy, which is one more process on a busy machine.
const LONGER_DELAY: &[&str] = &["--shutdown-delay-seconds", "5", "--shards", "configmaps=8"];
/// How long a member serves at least after it said that it is ready: as long as `DELAY` says.
const SERVES: Duration = Duration::from_secs(2);
/// How often the balancer probes each member.
const ASKS: Duration = Duration::from_millis(100);
/// How often one request may be refused with a request to try again. On a busy machine, a group may be without a leader
/// for a while.
const RETRIES_MAX: usize = if cfg!(debug_assertions) { 100 } else { 10 };
const CLIENTS: usize = 4;
/// How often requests of all clients together may be refused: once for each client and member. On a busy machine,
/// groups also lose leaders that did not run for seconds.
const RETRIES_IN_ALL_MAX: usize = 3 * CLIENTS * if cfg!(debug_assertions) { 10 } else { 1 };
/// How long a request may take with all its attempts.
const REQUEST_MAX: Duration = noticed(Duration::from_secs(5));
/// The pause between two requests of one client.
const PAUSE: Duration = Duration::from_millis(5);

/// The members, as the load balancer knows them.
struct Balancer<'a> {
    endpoints: &'a Endpoints,
    ready: Vec<AtomicBool>,
    /// When the balancer sent the last probe of each member that said that the member is ready.
    probed: Vec<Mutex<Instant>>,
    /// Set when the restarts are over, so that the clients end.
    is_over: AtomicBool,
    /// Set when the clients have ended, so that the probes end.
    is_unused: AtomicBool,
    /// The address of another balancer, which is used instead of this one.
    front: Option<SocketAddr>,
}

impl Balancer<'_> {
    /// Probes a member again and again.
    fn watch_over(&self, member: usize) {
        while !self.is_unused.load(Ordering::SeqCst) {
            let began = Instant::now();
            let is_ready = self.endpoints.is_ready(member);
            if is_ready {
                *self.probed[member].lock() = began;
            }
            self.ready[member].store(is_ready, Ordering::SeqCst);
            std::thread::sleep(ASKS);
        }
    }

    /// Returns a ready member: the previous one if it is ready, otherwise another one. If all probes are late, as on a
    /// busy machine, waits until one succeeds.
    fn choose(&self, before: usize) -> usize {
        let (size, deadline) = (self.ready.len(), Instant::now() + REQUEST_MAX);
        loop {
            let mut members = (0..size).map(|next| (before + next) % size);
            if let Some(ready) = members.find(|member| self.ready[*member].load(Ordering::SeqCst)) {
                return ready;
            }
            assert!(Instant::now() < deadline, "no member is ready");
            std::thread::sleep(ASKS);
        }
    }
}

/// Restarts every member, one after the other, and checks that no request fails.
pub fn no_request_fails() {
    let (fleet, endpoints) = Fleet::start_with_flags(3, DELAY);
    restart_all(fleet, &endpoints, None);
}

/// Checks the same behind HAProxy. Without HAProxy, the test is skipped.
pub fn no_request_fails_behind_haproxy() {
    if let Err(error) = Command::new("haproxy").arg("-v").stdout(Stdio::null()).status() {
        eprintln!("skipped: haproxy cannot be run: {error}");
        return;
    }
    let (fleet, endpoints) = Fleet::start_with_flags(3, LONGER_DELAY);
    let front = ports::free(1)[0];
    let _haproxy = HaProxy::start(front, &endpoints);
    let deadline = Instant::now() + PATIENCE;
    let is_there = || Connection::open_within(front, &endpoints.administrator, PATIENCE).is_ok();
    while !is_there() {
        assert!(Instant::now() < deadline, "haproxy reaches no member");
        std::thread::sleep(ASKS);
    }
    restart_all(fleet, &endpoints, Some(front));
}

/// A running HAProxy. It ends when this is dropped.
struct HaProxy(Child);

impl HaProxy {
    fn start(front: SocketAddr, endpoints: &Endpoints) -> HaProxy {
        let mut command = Command::new("haproxy");
        command.args(["-db", "-f"]).arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/haproxy.cfg"));
        command.env("FLOTILLA_BIND", front.to_string()).stdout(Stdio::null()).stderr(Stdio::null());
        for (name, member) in ["FLOTILLA_A", "FLOTILLA_B", "FLOTILLA_C"].into_iter().zip(&endpoints.members) {
            command.env(name, member.to_string());
        }
        HaProxy(command.spawn().expect("haproxy can be run"))
    }
}

impl Drop for HaProxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn restart_all(mut fleet: Fleet, endpoints: &Endpoints, front: Option<SocketAddr>) {
    let ready = (0..fleet.size()).map(|_| AtomicBool::new(true)).collect();
    let probed = (0..fleet.size()).map(|_| Mutex::new(Instant::now())).collect();
    let (is_over, is_unused) = (AtomicBool::new(false), AtomicBool::new(false));
    let balancer = Balancer { endpoints, ready, probed, is_over, is_unused, front };
    std::thread::scope(|scope| {
        /// Stops threads, even when the test fails.
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let _unused = Over(&balancer.is_unused);
        let over = Over(&balancer.is_over);
        let balancer = &balancer;
        for member in 0..fleet.size() {
            scope.spawn(move || balancer.watch_over(member));
        }
        let clients: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || use_it(balancer, number))).collect();
        for member in 0..fleet.size() {
            fleet.terminate(member);
            fleet.start_member(member);
            fleet.await_ready(endpoints);
        }
        drop(over);
        let (mut requests, mut retries) = (0, 0);
        for client in clients {
            let used = client.join().expect("a request failed");
            (requests, retries) = (requests + used.0, retries + used.1);
        }
        assert!(retries <= RETRIES_IN_ALL_MAX, "{retries} requests had to be repeated");
        println!("{requests} requests during a rolling restart, {retries} repeated");
    });
}

/// Updates and reads an object until the restarts are over. Returns the number of requests, and how many of them had to
/// be repeated.
fn use_it(balancer: &Balancer, number: usize) -> (usize, usize) {
    let name = format!("rolling-{number}");
    let path = config_map_path(&name);
    let mut client = Client { balancer, member: number % balancer.ready.len(), connection: None, retries: 0, late: 0 };
    client.call("POST", CONFIG_MAPS, &config_map(&name, "0").to_string());
    for count in 1.. {
        if balancer.is_over.load(Ordering::SeqCst) {
            return (count * 2, client.retries);
        }
        let value = count.to_string();
        client.call("PUT", &path, &config_map(&name, &value).to_string());
        assert_eq!(client.call("GET", &path, "").json()["data"]["value"], value);
        std::thread::sleep(PAUSE);
    }
    unreachable!("the loop has no other end")
}

struct Client<'a> {
    balancer: &'a Balancer<'a>,
    member: usize,
    connection: Option<Connection>,
    retries: usize,
    /// How many requests went to a member that may have ended, because the balancer was late.
    late: usize,
}

impl Client<'_> {
    /// Sends a request until it succeeds. The only other answer that is allowed is a refusal that says when to try
    /// again.
    fn call(&mut self, method: &str, path: &str, body: &str) -> Answer {
        let began = Instant::now();
        for _ in 0..RETRIES_MAX {
            let answer = self.send(method, path, body);
            // A request that was sent late may have created the object although no answer came.
            let is_there = answer.status == 409 && method == "POST" && self.late > 0;
            if is_there || matches!(answer.status, 200 | 201) {
                assert!(began.elapsed() < REQUEST_MAX, "{method} {path} took {:?}", began.elapsed());
                return answer;
            }
            let seconds = answer.header("retry-after").and_then(|seconds| seconds.parse().ok());
            let is_tried_again = matches!(answer.status, 429 | 503) && seconds.is_some();
            assert!(is_tried_again, "{method} {path} through member {}: {}", self.member, answer.text());
            self.retries += 1;
            std::thread::sleep(Duration::from_secs(seconds.unwrap_or_default()));
        }
        panic!("{method} {path} is refused too often");
    }

    fn send(&mut self, method: &str, path: &str, body: &str) -> Answer {
        if let Some(front) = self.balancer.front {
            return self.send_through(front, method, path, body);
        }
        let deadline = Instant::now() + REQUEST_MAX;
        loop {
            let member = self.balancer.choose(self.member);
            let probed = *self.balancer.probed[member].lock();
            if member != self.member {
                (self.member, self.connection) = (member, None);
            }
            let began = Instant::now();
            match self.ask(self.balancer.endpoints.members[member], method, path, body) {
                Ok(answer) => return answer,
                Err(error) => {
                    // On a busy machine, the last probe or this request may be so late that the member has ended
                    // meanwhile, as it may.
                    let is_excused = probed.elapsed() > SERVES && Instant::now() < deadline;
                    assert!(is_excused, "{method} through member {member}, {:?}: {error}", began.elapsed());
                    self.late += 1;
                    std::thread::sleep(ASKS);
                }
            }
        }
    }

    /// Sends a request through another balancer. The balancer may have closed the previous connection together with the
    /// member behind it. The request is then repeated on a new connection, as clients do with requests that can be
    /// repeated.
    fn send_through(&mut self, front: SocketAddr, method: &str, path: &str, body: &str) -> Answer {
        let was_used = self.connection.is_some();
        match self.ask(front, method, path, body) {
            Err(_) if was_used => self.ask(front, method, path, body),
            answered => answered,
        }
        .unwrap_or_else(|error| panic!("{method} {path} through the balancer: {error}"))
    }

    /// Sends a request on the open connection, or on a new one.
    fn ask(&mut self, address: SocketAddr, method: &str, path: &str, body: &str) -> io::Result<Answer> {
        let headers: &[_] = if body.is_empty() { &[] } else { &[("Content-Type", "application/json")] };
        let administrator = &self.balancer.endpoints.administrator;
        let mut open = match self.connection.take() {
            Some(open) => open,
            None => Connection::open_within(address, administrator, PATIENCE)?,
        };
        let answer = open.call(method, path, headers, body.as_bytes())?;
        self.connection = Some(open);
        Ok(answer)
    }
}
