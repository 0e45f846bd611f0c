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
use flotilla::causes::with_causes;
use flotilla::config::{self, Config, ConfigError, LogFormat};
use flotilla::console::Console;
use flotilla::drain::{Drain, DrainBegin};
use flotilla::gateway::Gateway;
use flotilla::moving::{Export, Import};
use flotilla::overview::{Doctor, Status, Top, WarningRecorder};
use flotilla::parent::Parent;
use flotilla::terminal::answer;
use flotilla::{tasks, version};

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
    /// No flag is required: by default the server listens on 127.0.0.1:6443, makes its certificates on first start, and
    /// writes a kubeconfig with all rights to `admin.kubeconfig` in the data directory.
    ///
    /// Each flag can also stand in a file (`--config`) and in the environment: `--data-dir` is `data-dir = "..."` in
    /// the file and FLOTILLA_DATA_DIR in the environment, where a list is `[a, b]`. Flags win over the environment, and
    /// the environment wins over the file.
    ///
    /// SIGTERM and SIGINT stop the server: `/readyz` fails, watches end, the server finishes open requests and exits
    /// with code 0. A second signal ends it at once. The exit code is 1 when the server cannot start or fails, 2 when
    /// flags or configuration are wrong, and 70 when the disk fails to write, or has lost acknowledged writes. While
    /// the disk is full, the server answers writes with 507, and serves reads.
    ///
    /// `/readyz`, `/livez` and `/healthz` report the health of the server to everybody. `/metrics` has its metrics in
    /// the text format of Prometheus, for users who may get that path; the ClusterRole system:monitoring allows it.
    Serve(Box<Serve>),
    /// Show and change the members that replicate the store together.
    ///
    /// Any member answers, also about others. Every command can be repeated safely. It exits with 1 when it fails.
    Cluster(Box<Cluster>),
    /// Show the state of a member and its cluster: members and leaders, lag, requests with their latency, watches,
    /// disk.
    ///
    /// The member that the kubeconfig names reports it at `/flotilla/v1/overview`, at no cost while nobody asks.
    /// Latencies cover all requests since the member started, and are as exact as the buckets of their histogram.
    Status(Box<Status>),
    /// Show the current requests and watches of a member: rates, durations, slow requests, watches that are behind.
    ///
    /// The command observes the member twice and shows the rates in between; with --watch it goes on.
    Top(Box<Top>),
    /// Issue a link that opens the console of a member in a browser, once.
    ///
    /// The console is a page at `/console` that shows the state of the member. By default only browsers on the member's
    /// own machine can see it: see `flotilla serve --console`.
    Console(Box<Console>),
    /// Check a data directory, certificates, clocks and the connections between members, and give advice.
    ///
    /// The command changes nothing. It exits with 1 when something is broken, and warns of problems that come nearer.
    Doctor(Box<Doctor>),
    /// Write a script to standard output that makes a shell complete this command line.
    ///
    /// For bash: `flotilla completion bash > /etc/bash_completion.d/flotilla`.
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write a manual page of every command into a directory.
    Man {
        /// The directory; it must exist.
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Save everything that a cluster stores, as of one moment, while the cluster goes on.
    ///
    /// Any member can send the backup; a member that is stopped is read from its data directory. The command checks the
    /// file while it writes it, and gives it its name once it is complete and durable. The file holds Secrets
    /// unencrypted. It has no certificates and keys: keep a copy of the directory `pki` too, or clients need new
    /// credentials after a restore.
    Backup(Box<Backup>),
    /// Make the data directory of a new cluster from a backup.
    ///
    /// Every object gets a new resourceVersion, above all those of the old cluster: a client that continues from one of
    /// those gets 410 and lists again. Everything else stays as it was, UIDs included. The command makes nothing of a
    /// backup that is incomplete or damaged.
    Restore(Box<Restore>),
    /// Make the authorities and keys that the servers of a cluster share.
    ///
    /// A server with `--pki-dir` makes those that it does not find. Use this command to make them beforehand: to give
    /// them to several servers, or to keep them in a Secret.
    Pki(Box<SharedKeys>),
    /// Make a data directory from a snapshot of kube-apiserver's etcd, or from a running API server.
    ///
    /// Objects keep their UIDs, times, generations, owners and field owners. Every object gets a new resourceVersion,
    /// above all those of the snapshot: a client that continues from one of those gets 410 and lists again. The command
    /// reports objects that it cannot import, and puts them into a file beside the data directory. It makes nothing of
    /// a snapshot that is incomplete, damaged, or encrypted with keys that it does not have. Keys of service accounts
    /// and certificates are not in etcd: give `flotilla serve` those of kube-apiserver by its flags.
    Import(Box<Import>),
    /// Write the objects of a cluster as a snapshot of etcd for kube-apiserver 1.36, or as YAML.
    ///
    /// Objects keep their resourceVersions in a snapshot of etcd. The output holds Secrets unencrypted.
    Export(Box<Export>),
    /// Serve in place of kube-apiserver, with its flags. A link named `kube-apiserver` does the same.
    #[command(name = roles::KUBE_APISERVER, disable_help_flag = true)]
    KubeApiserver,
    /// Stand in for the etcd that tools start beside kube-apiserver, with its flags; it stores nothing. A link named
    /// `etcd` does the same.
    #[command(name = roles::ETCD, disable_help_flag = true)]
    Etcd,
    /// Name the commands to use in place of etcdctl. A link named `etcdctl` does the same.
    #[command(name = roles::ETCDCTL, disable_help_flag = true)]
    Etcdctl,
    /// Print the version.
    Version,
}

#[derive(Debug, clap::Args)]
struct Serve {
    /// TOML file with options, under the names of the flags.
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
        _ => answer(version::GIT_VERSION),
    }
}

/// Serves as configured, after logging `warnings`.
fn begin(serve: &Serve, matches: &ArgMatches, warnings: &[String]) -> ExitCode {
    match config::load(&serve.settings, matches, serve.config.as_deref()).and_then(trace) {
        Ok(config) => {
            warnings.iter().for_each(|line| tracing::warn!("{line}"));
            start(config)
        }
        Err(error) => fail(&error, MISUSED),
    }
}

/// Returns the exit code of a command that has ended.
fn end(done: Result<(), impl std::error::Error + 'static>) -> ExitCode {
    done.map_or_else(|error| fail(&error, FAILED), |()| ExitCode::SUCCESS)
}

/// Turns off log targets to which libraries write errors that need no attention: broken connections, with which any
/// client could fill the log; requests that a group refused, since their senders report the refusal; and groups that
/// stopped with the server. A filter that names a target turns it on.
const NO_ERRORS: &str = "actix_http::h1=off,actix_http::h2=off,h2=off,rustls=off,\
                         openraft::raft::raft_inner=off,openraft::raft::api::management=off";

/// Sends the log to standard error, in the configured format and with the configured filter. Then warns of environment
/// variables that look like options but name none.
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
        tracing::warn!(variable, "unrecognized environment variable: no option has this name");
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
    tasks::detached_here("signals", signals.drive(begin, config.shutdown_delay()));
    let boot = Boot::open(config, drain).await?;
    let gateway = Gateway::start(&boot).await?;
    boot.announce();
    let (routes, audit) = (gateway.routes(), gateway.audit());
    let served = boot.serve(routes, move || gateway.is_idle()).await;
    if let Some(audit) = audit {
        audit.close().await;
    }
    served
}

/// The signals that stop a server.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// The process whose end also stops the server. `None` if no process does, or once it has ended.
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
    eprintln!("flotilla: {}", with_causes(error));
    ExitCode::from(code)
}
