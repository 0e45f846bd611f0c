//! The command line.

mod roles;
mod written;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use flotilla::administration::{Cluster, SharedKeys};
use flotilla::backup::{Backup, Restore};
use flotilla::boot::{Boot, BootError};
use flotilla::config::{self, Config, ConfigError, LogFormat};
use flotilla::console::Console;
use flotilla::drain::{Drain, DrainBegin};
use flotilla::gateway::Gateway;
use flotilla::moving::{Export, Import};
use flotilla::overview::{Doctor, Status, Top, WarningRecorder};
use flotilla::parent::Parent;
use flotilla::version;

/// Exit code for a server that could not start, or failed.
const FAILED: u8 = 1;
/// Exit code for a wrong command line or configuration.
const MISUSED: u8 = 2;

/// A Kubernetes API server that needs no etcd.
#[derive(Debug, Parser)]
#[command(name = "flotilla", version = version::GIT_VERSION, max_term_width = 120)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the Kubernetes API.
    ///
    /// Everything is optional: without any flag the server listens on 127.0.0.1:6443, makes its certificates on first
    /// start, and writes a kubeconfig with all rights to `admin.kubeconfig` in the data directory.
    ///
    /// Each flag can also stand in a file (`--config`) and in the environment: `--data-dir` is `data-dir = "..."` in
    /// the file and FLOTILLA_DATA_DIR in the environment, where a list is `[a, b]`. Flags win over the environment, and
    /// that wins over the file.
    ///
    /// SIGTERM and SIGINT stop the server: `/readyz` fails, watches end, open requests are finished, then it exits with
    /// 0. A second signal ends it at once. It exits with 1 when it cannot start or fails, with 2 when flags or
    /// configuration are wrong, and with 70 when the disk fails to keep what was written, or does not hold what was
    /// acknowledged. While the disk is full writes are answered with 507, and reads go on.
    ///
    /// `/readyz`, `/livez` and `/healthz` tell how the server is, to everybody. `/metrics` tells what it does in the
    /// text form of Prometheus, to whoever may get that path, as the ClusterRole system:monitoring allows it.
    Serve(Box<Serve>),
    /// See and change who replicates the store together.
    ///
    /// Any member can be asked, also about others. Every command can be repeated safely. It exits with 1 when it fails.
    Cluster(Box<Cluster>),
    /// Show how a member and its cluster are: members and leaders, lag, requests with their latency, watches, disk.
    ///
    /// The member that the kubeconfig names reports it at `/flotilla/v1/overview`, at no cost while nobody asks.
    /// Latencies are of all requests since the member started, and as exact as the buckets of their histogram.
    Status(Box<Status>),
    /// Show the requests and watches of a member as they go: rates, durations, slow requests, watches that are behind.
    ///
    /// It observes the member twice and shows the rates in between; with --watch again and again.
    Top(Box<Top>),
    /// Issue a link that opens the console of a member in a browser, once.
    ///
    /// The console is a page at `/console` that shows the state of the member. By default only browsers on the member's
    /// own machine can see it: see `flotilla serve --console`.
    Console(Box<Console>),
    /// Check a data directory, certificates, clocks and whether members reach each other, and say what to do.
    ///
    /// Nothing is changed. It exits with 1 when something is broken; what only comes nearer is a warning.
    Doctor(Box<Doctor>),
    /// Write what makes a shell complete this command line to standard output.
    ///
    /// For bash: `flotilla completion bash > /etc/bash_completion.d/flotilla`.
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write a manual page of every command into a directory.
    Man {
        /// The directory; it must be there.
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Save everything that a cluster stores, as of one moment, while it goes on.
    ///
    /// Any member can be asked; or the data directory of one that is stopped is read. The file is checked while it is
    /// written, and has its name only when all of it is there and durable. It holds Secrets as they are. Certificates
    /// and keys are not in it: keep a copy of the directory `pki` too, or clients have to be given new credentials
    /// after a restore.
    Backup(Box<Backup>),
    /// Make a data directory out of a backup, for a new cluster.
    ///
    /// Everything gets a new resourceVersion, above all that the old cluster has handed out: clients that go on from
    /// one of those are answered with 410, list again, and are right again. Everything else stays as it was, UIDs
    /// included. Nothing is made of a backup that is incomplete or damaged.
    Restore(Box<Restore>),
    /// Make the authorities and keys that the servers of a cluster share.
    ///
    /// A server that is started with `--pki-dir` and finds some of them missing makes these itself. This command is for
    /// those who make them beforehand: to hand them to several servers, or to keep them in a Secret.
    Pki(Box<SharedKeys>),
    /// Make a data directory out of what kube-apiserver keeps in etcd, or out of a running API server.
    ///
    /// Objects keep their UIDs, times, generations, owners and field owners. Everything gets a new resourceVersion,
    /// above all those of the snapshot, so that clients that go on from one of those are answered with 410 and list
    /// again. What cannot be taken over is told and put into a file beside. Nothing is made of a snapshot that is
    /// incomplete, damaged, or encrypted with keys that are not given. Keys of service accounts and certificates are
    /// not in etcd: `flotilla serve` takes those of kube-apiserver by its flags.
    Import(Box<Import>),
    /// Write what a cluster stores as a snapshot of etcd for kube-apiserver 1.36, or as YAML.
    ///
    /// Objects keep their resourceVersions in a snapshot of etcd. There are Secrets in what is written, as they are.
    Export(Box<Export>),
    /// Serve in the place of kube-apiserver, with its flags. A link named `kube-apiserver` does the same.
    #[command(name = roles::KUBE_APISERVER, disable_help_flag = true)]
    KubeApiserver,
    /// Stand in for the etcd that others start beside kube-apiserver, with its flags; it keeps nothing. A link named
    /// `etcd` does the same.
    #[command(name = roles::ETCD, disable_help_flag = true)]
    Etcd,
    /// Tell what to use in the place of etcdctl. A link named `etcdctl` does the same.
    #[command(name = roles::ETCDCTL, disable_help_flag = true)]
    Etcdctl,
    /// Print the version.
    Version,
}

#[derive(Debug, clap::Args)]
struct Serve {
    /// TOML file with options, named as the flags are.
    #[arg(long, value_name = "FILE", env = "FLOTILLA_CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Config,
}

/// Runs the command line.
pub fn run() -> ExitCode {
    if let Some(ended) = roles::run() {
        return ended;
    }
    let matches = Cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match (cli.command, matches.subcommand()) {
        (Command::Serve(serve), Some((_, matches))) => begin(&serve, matches, &[]),
        (Command::Cluster(cluster), _) => end(cluster.run()),
        (Command::Status(status), _) => end(status.run()),
        (Command::Top(top), _) => end(top.run()),
        (Command::Console(console), _) => end(console.run()),
        (Command::Doctor(doctor), _) => match doctor.run() {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(FAILED),
            Err(error) => fail(&error, FAILED),
        },
        (Command::Completion { shell }, _) => end(written::completion(shell)),
        (Command::Man { directory }, _) => end(written::manual(&directory)),
        (Command::Backup(backup), _) => end(backup.run()),
        (Command::Pki(keys), _) => end(keys.run()),
        (Command::Restore(restore), _) => end(restore.run()),
        (Command::Import(import), _) => end(import.run()),
        (Command::Export(export), _) => end(export.run()),
        _ => {
            println!("{}", version::GIT_VERSION);
            ExitCode::SUCCESS
        }
    }
}

/// Serves as configured, after logging the warnings in `told`.
fn begin(serve: &Serve, matches: &ArgMatches, told: &[String]) -> ExitCode {
    match config::load(&serve.settings, matches, serve.config.as_deref()).and_then(trace) {
        Ok(config) => {
            told.iter().for_each(|line| tracing::warn!("{line}"));
            start(config)
        }
        Err(error) => fail(&error, MISUSED),
    }
}

/// Returns the exit code of a command that has ended.
fn end(done: Result<(), impl std::error::Error + 'static>) -> ExitCode {
    done.map_or_else(|error| fail(&error, FAILED), |()| ExitCode::SUCCESS)
}

/// Turns off log targets at which libraries report as errors what is none: broken connections, with which each client
/// could fill the log; requests that a group refused, which their senders report; and groups that stopped with the
/// server. A filter that names them turns them on.
const NO_ERRORS: &str = "actix_http::h1=off,actix_http::h2=off,h2=off,rustls=off,\
                         openraft::raft::raft_inner=off,openraft::raft::api::management=off";

/// Sends the log to standard error, in the configured format and with the configured filter. Then warns of environment
/// variables that look like options but are none.
fn trace(config: Config) -> Result<Config, ConfigError> {
    let filter = EnvFilter::try_new(format!("{NO_ERRORS},{}", config.log_level))
        .map_err(|error| ConfigError::Invalid { option: "log-level", why: error.to_string() })?;
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let log = match config.log_format {
        LogFormat::Text => log.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).boxed(),
        LogFormat::Json => log.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(filter).with(log).with(WarningRecorder).init();
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    for variable in config::unrecognized_variables(std::env::vars_os().filter_map(text)) {
        tracing::warn!(variable, "unrecognized environment variable: there is no such option");
    }
    Ok(config)
}

fn start(config: Config) -> ExitCode {
    match actix_web::rt::System::new().block_on(serve(config)) {
        Ok(()) => {
            tracing::info!("stopped");
            ExitCode::SUCCESS
        }
        Err(error) => fail(&error, if error.is_misuse() { MISUSED } else { FAILED }),
    }
}

async fn serve(config: Config) -> Result<(), BootError> {
    let (begin, drain) = Drain::new();
    let parent = config.end_with_parent.then(Parent::find).transpose().map_err(BootError::Parent)?;
    let signals = Signals::new(parent).map_err(BootError::Signals)?;
    actix_web::rt::spawn(signals.drive(begin, config.shutdown_delay()));
    let boot = Boot::open(config, drain).await?;
    let gateway = Gateway::start(&boot).await?;
    boot.announce();
    let routes = gateway.routes();
    boot.serve(routes, move || gateway.is_idle()).await
}

/// What stops a server.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// Whose end stops it too, once.
    parent: Option<Parent>,
}

impl Signals {
    fn new(parent: Option<Parent>) -> std::io::Result<Self> {
        let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(Self { terminate, interrupt, parent })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            () = Self::ended(&mut self.parent) => "the end of the parent",
        }
    }

    async fn ended(parent: &mut Option<Parent>) {
        match parent {
            Some(found) if found.ended().await.is_ok() => *parent = None,
            _ => std::future::pending().await,
        }
    }

    /// The first signal begins the drain, after a delay. The second one ends the process.
    async fn drive(mut self, begin: DrainBegin, delay: Duration) {
        let signal = self.next().await;
        begin.announce();
        let stopping = async {
            actix_web::rt::time::sleep(delay).await;
            tracing::info!("stopping: watches end, open requests are finished");
            begin.begin();
            std::future::pending::<()>().await;
        };
        tracing::info!(signal, delay_seconds = delay.as_secs(), "not ready any more");
        let signal = tokio::select! {
            signal = self.next() => signal,
            () = stopping => return,
        };
        tracing::warn!(signal, "stopping at once");
        std::process::exit(FAILED.into());
    }
}

/// Prints an error with its causes to standard error. Returns the exit code.
fn fail(error: &dyn std::error::Error, code: u8) -> ExitCode {
    let causes = std::iter::successors(error.source(), |error| error.source());
    let text = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
    eprintln!("flotilla: {text}");
    ExitCode::from(code)
}
