//! A server as a child process.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::PATIENCE;
use super::client::{Answer, Connection, Watch};
use super::credentials::Credentials;

/// How long a server may take to start, even on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(180);
/// How long a server may take to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(120);
const ANY_PORT: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));
const READY: &str = "/readyz";
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A data directory, and beside it files with the standard error of its servers. All are removed when this value is
/// dropped.
pub struct DataDir(PathBuf);

impl DataDir {
    pub fn new() -> DataDir {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("server-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary directory");
        DataDir(path)
    }

    pub fn path(&self) -> PathBuf {
        self.0.join("data")
    }

    /// Returns the path of the log's only segment. The log has one segment until much has been written.
    pub fn log_segment(&self) -> PathBuf {
        let files = fs::read_dir(self.path().join("wal")).expect("the log");
        let paths = files.map(|file| file.expect("a file").path());
        let mut segments: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|it| it == "wal")).collect();
        assert_eq!(segments.len(), 1, "{segments:?}");
        segments.remove(0)
    }

    fn command(&self, flags: &[&str]) -> Command {
        self.command_on(ANY_PORT, flags)
    }

    fn command_on(&self, listen: SocketAddr, flags: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flotilla"));
        command.args(["serve", "--workers", "2", "--listen", &listen.to_string(), "--data-dir"]);
        command.arg(self.path()).args(flags);
        command
    }

    fn spawn(&self, mut command: Command) -> (Child, PathBuf) {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let messages = self.0.join(format!("messages-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&messages).expect("a file for messages"))
            .spawn()
            .expect("the server can be run");
        (child, messages)
    }

    /// Starts a server. Panics if it does not become ready.
    pub fn start(&self) -> Server {
        self.try_start().unwrap_or_else(|refusal| panic!("the server ended with {refusal:?}"))
    }

    /// Starts a server on an address, which it may have had before. Panics if it does not become ready.
    pub fn start_on(&self, listen: SocketAddr) -> Server {
        // The server does not replace a kubeconfig that is still right, but `run` waits for a new file.
        let _ = fs::remove_file(self.path().join("admin.kubeconfig"));
        let started = self.run(self.command_on(listen, &[]), READY, |_| self.path());
        started.unwrap_or_else(|refusal| panic!("the server ended with {refusal:?}"))
    }

    /// Starts a server with additional flags. Panics if it does not become ready.
    pub fn start_with(&self, flags: &[&str]) -> Server {
        self.try_start_with(flags).unwrap_or_else(|refusal| panic!("the server ended with {refusal:?}"))
    }

    /// Starts a server whose data directory is a file system of `bytes` bytes. The file system disappears with the
    /// server. Returns `None` if this machine does not permit the mount.
    pub fn start_on_small_disk(&self, bytes: u64) -> Option<Server> {
        fs::create_dir_all(self.path()).expect("a directory");
        let script = "mount -t tmpfs -o size=$0 tmpfs \"$1\" || exit 99; shift; exec \"$@\"";
        let server = self.command(&[]);
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", script, &bytes.to_string()]).arg(self.path());
        command.arg(server.get_program()).args(server.get_args());
        // Only the server's process sees the mount; others reach it through /proc.
        self.run_if_allowed(command, READY, |id| {
            Path::new(&format!("/proc/{id}/root")).join(self.path().strip_prefix("/").expect("an absolute path"))
        })
    }

    /// Starts a server that sees this file as `/etc/hosts`, and waits until it answers, ready or not. Returns `None` if
    /// this machine does not permit the mount.
    pub fn begin_with_hosts(&self, hosts: &Path, flags: &[&str]) -> Option<Server> {
        // Without `multi on`, a name has only one address.
        let several = hosts.with_extension("conf");
        fs::write(&several, "multi on\n").expect("a file");
        let script =
            "mount --bind \"$0\" /etc/hosts && mount --bind \"$1\" /etc/host.conf || exit 99; shift; exec \"$@\"";
        let server = self.command(flags);
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", script]).arg(hosts).arg(several);
        command.arg(server.get_program()).args(server.get_args());
        self.run_if_allowed(command, "/livez", |_| self.path())
    }

    /// Runs a server with mounts of its own. Returns `None` if this machine does not permit mounts.
    fn run_if_allowed(&self, command: Command, check: &str, data: impl Fn(u32) -> PathBuf) -> Option<Server> {
        match self.run(command, check, data) {
            Ok(server) => Some(server),
            Err(Refusal { code: Some(99 | 127 | 1), messages }) if !messages.contains("flotilla") => {
                eprintln!("skipped: nothing can be mounted on this machine: {messages}");
                None
            }
            Err(refusal) => panic!("the server ended with {refusal:?}"),
        }
    }

    /// Starts a server, and waits until it is ready. Returns `Err` if it ends before that.
    pub fn try_start(&self) -> Result<Server, Refusal> {
        self.try_start_with(&[])
    }

    /// Starts a server with additional flags, and waits until it is ready. Returns `Err` if it ends before that.
    pub fn try_start_with(&self, flags: &[&str]) -> Result<Server, Refusal> {
        self.run(self.command(flags), READY, |_| self.path())
    }

    /// Starts a server with additional environment variables, and waits until it is ready. Returns `Err` if it ends
    /// before that.
    pub fn try_start_in(&self, environment: &[(&str, &str)]) -> Result<Server, Refusal> {
        let mut command = self.command(&[]);
        command.envs(environment.iter().copied());
        self.run(command, READY, |_| self.path())
    }

    /// Starts a server with additional flags, and waits until it answers, ready or not.
    pub fn begin_with(&self, flags: &[&str]) -> Server {
        let begun = self.run(self.command(flags), "/livez", |_| self.path());
        begun.unwrap_or_else(|refusal| panic!("the server ended with {refusal:?}"))
    }

    /// Starts a server, and waits until the check at this path passes. `data` returns the path of the data directory,
    /// given the process id. Returns `Err` if the server ends before that.
    fn run(&self, command: Command, check: &str, data: impl Fn(u32) -> PathBuf) -> Result<Server, Refusal> {
        let written = |kubeconfig: &Path| fs::metadata(kubeconfig).and_then(|file| file.modified()).ok();
        let before = written(&self.path().join("admin.kubeconfig"));
        let (child, messages) = self.spawn(command);
        let data = data(child.id());
        let kubeconfig = data.join("admin.kubeconfig");
        let mut running = Running { child, messages };
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            if let Some(status) = running.child.try_wait().expect("a child") {
                return Err(Refusal { code: status.code(), messages: running.messages() });
            }
            // Ignores the kubeconfig of a previous server, which names another port.
            if running.messages().contains("serving") && written(&kubeconfig) != before {
                let credentials = Credentials::read(&kubeconfig);
                let ready = Connection::open(credentials.address, &credentials.administrator)
                    .and_then(|mut connection| connection.call("GET", check, &[], b""));
                if ready.is_ok_and(|answer| answer.status == 200) {
                    return Ok(Server { running, credentials, data });
                }
            }
            assert!(Instant::now() < deadline, "not ready in time: {}", running.messages());
            sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The end of a server that did not become ready.
#[derive(Debug)]
pub struct Refusal {
    pub code: Option<i32>,
    /// Its standard error.
    pub messages: String,
}

/// A child process. It is killed when this value is dropped.
struct Running {
    child: Child,
    messages: PathBuf,
}

impl Running {
    fn messages(&self) -> String {
        fs::read_to_string(&self.messages).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running server.
pub struct Server {
    running: Running,
    credentials: Credentials,
    data: PathBuf,
}

impl Server {
    /// Returns what another thread needs to connect.
    pub fn credentials(&self) -> Credentials {
        self.credentials.clone()
    }

    /// Opens a connection with the administrator's credentials.
    pub fn connect(&self) -> Connection {
        self.credentials.connect()
    }

    /// Opens a connection with the administrator's credentials, once the namespace `default` has the ServiceAccount
    /// that pods need.
    #[allow(dead_code, reason = "not every test program creates pods on one server")]
    pub fn connect_for_pods(&self) -> Connection {
        let mut client = self.connect();
        let deadline = Instant::now() + START_TIMEOUT;
        while client.get("/api/v1/namespaces/default/serviceaccounts/default").status != 200 {
            assert!(Instant::now() < deadline, "no ServiceAccount for pods");
            sleep(POLL_INTERVAL);
        }
        client
    }

    /// Starts a watch through a member of a cluster. Repeats the request while the answer is 503 or 504. `Err` contains
    /// another answer that refuses the watch.
    pub fn watch(&self, path: &str) -> Result<Watch, Answer> {
        let deadline = Instant::now() + PATIENCE;
        let is_passing = |refused: &Answer| matches!(refused.status, 503 | 504) && Instant::now() < deadline;
        loop {
            match self.connect().watch(path).expect("an answer") {
                Err(refused) if is_passing(&refused) => sleep(POLL_INTERVAL),
                answered => return answered,
            }
        }
    }

    /// Opens a connection without credentials.
    pub fn connect_anonymously(&self) -> Connection {
        Connection::open(self.credentials.address, &self.credentials.anonymous).expect("a connection")
    }

    /// Returns the standard error of the server so far.
    pub fn messages(&self) -> String {
        self.running.messages()
    }

    /// Ends the server with SIGKILL.
    pub fn kill(mut self) {
        self.running.child.kill().expect("SIGKILL");
        self.running.child.wait().expect("an end");
    }

    /// Returns the data directory, as this process sees it.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Returns the resident memory, in bytes.
    pub fn resident_bytes(&self) -> u64 {
        self.memory_bytes("VmRSS:")
    }

    /// Returns the largest resident memory so far, in bytes.
    pub fn peak_resident_bytes(&self) -> u64 {
        self.memory_bytes("VmHWM:")
    }

    /// Returns the processor time of all running threads. Threads that have ended are not counted.
    #[allow(dead_code, reason = "not every test program measures")]
    pub fn processor_time(&self) -> Duration {
        let threads = fs::read_dir(format!("/proc/{}/task", self.running.child.id())).expect("proc(5)");
        let taken = threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("schedstat")).ok());
        let nanoseconds = |text: String| text.split_ascii_whitespace().next()?.parse::<u64>().ok();
        Duration::from_nanos(taken.filter_map(nanoseconds).sum())
    }

    /// Returns the number of open sockets.
    pub fn sockets(&self) -> usize {
        let descriptors = fs::read_dir(format!("/proc/{}/fd", self.running.child.id())).expect("proc(5)");
        let targets = descriptors.flatten().filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
        targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
    }

    fn memory_bytes(&self, which: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.running.child.id())).expect("proc(5)");
        let kilobytes = status.lines().find_map(|line| line.strip_prefix(which)?.split_ascii_whitespace().next());
        kilobytes.and_then(|number| number.parse::<u64>().ok()).expect("proc(5)") * 1024
    }

    /// Sends SIGTERM, waits for the end, and returns the exit status.
    pub fn terminate(self) -> ExitStatus {
        self.send_sigterm();
        self.wait()
    }

    /// Sends SIGTERM.
    pub fn send_sigterm(&self) {
        self.signal("TERM");
    }

    /// Sends a signal, for instance STOP or CONT.
    pub fn signal(&self, signal: &str) {
        let id = self.running.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &id]).status().expect("kill").success());
    }

    /// Sets how many files the server may have open at most.
    #[allow(dead_code, reason = "not every test program sets this limit")]
    pub fn limit_open_files(&self, most: u64) {
        let arguments = ["--pid".to_owned(), self.running.child.id().to_string(), format!("--nofile={most}:{most}")];
        assert!(Command::new("prlimit").args(arguments).status().expect("prlimit(1)").success());
    }

    /// Sends SIGSTOP and waits until all threads have stopped. On a busy machine, some run on for a while after the
    /// signal.
    pub fn freeze(&self) {
        self.signal("STOP");
        let threads = format!("/proc/{}/task", self.running.child.id());
        let stands = |stat: &str| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'));
        let is_frozen = || {
            let mut threads = std::fs::read_dir(&threads).expect("a process");
            threads.all(|thread| {
                let stat = std::fs::read_to_string(thread.expect("a thread").path().join("stat"));
                stat.is_ok_and(|stat| stands(&stat))
            })
        };
        let deadline = Instant::now() + STOP_TIMEOUT;
        while !is_frozen() {
            assert!(Instant::now() < deadline, "some threads did not stop");
            sleep(POLL_INTERVAL);
        }
    }

    /// Waits for the server's end, and returns the exit status.
    pub fn wait(mut self) -> ExitStatus {
        let deadline = Instant::now() + STOP_TIMEOUT;
        loop {
            if let Some(status) = self.running.child.try_wait().expect("a child") {
                return status;
            }
            assert!(Instant::now() < deadline, "still running: {}", self.running.messages());
            sleep(POLL_INTERVAL);
        }
    }
}

impl Credentials {
    /// Opens a connection with the administrator's credentials.
    pub fn connect(&self) -> Connection {
        Connection::open(self.address, &self.administrator).expect("a connection")
    }
}
