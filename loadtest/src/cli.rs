//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use tokio::net::TcpListener;

use crate::connection::{self, Connector, Protocol};
use crate::kubeconfig;
use crate::process::Processes;
use crate::report::Figures;
use crate::rows::{Context, ROWS};
use crate::{balance, scenario, seed, start};

/// Measures the cost of requests to a Kubernetes API server.
///
/// CPU time is measured for the processes named by --pid, which must run on this machine. For comparable figures, pin
/// the server and the harness to different cores with `taskset -c`.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
    /// Kubeconfig file of a client with all permissions.
    #[arg(long, global = true, env = "KUBECONFIG", default_value = "kubeconfig")]
    kubeconfig: PathBuf,
    /// Process id of the server. May be repeated; figures are then sums.
    #[arg(long = "pid", global = true)]
    pids: Vec<u32>,
    /// Namespace for all objects of the harness.
    #[arg(long, global = true, default_value = "loadtest")]
    namespace: String,
    /// Number of concurrent clients. Each row has its own default; seeding uses 16.
    #[arg(long, global = true, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    clients: Option<u16>,
    /// Number of HTTP/2 connections that the clients share.
    #[arg(long, global = true, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    connections: u16,
    /// Version of HTTP.
    #[arg(long, global = true, value_enum, default_value_t = Http::Http2)]
    http: Http,
    /// Print figures as JSON, one object per line.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Http {
    /// HTTP/1.1: each client has its own connection.
    #[value(name = "1")]
    Http1,
    /// HTTP/2: clients share connections.
    #[value(name = "2")]
    Http2,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure rows of the cost table, or `all`.
    Run {
        /// Names of rows; `loadtest rows` lists them.
        #[arg(required = true)]
        rows: Vec<String>,
        /// Seconds for which each row is measured.
        #[arg(long, default_value_t = 5.0)]
        seconds: f64,
        /// Seconds for which each row runs before the measurement.
        #[arg(long, default_value_t = 0.5)]
        warmup: f64,
        /// Largest number of requests of a row.
        #[arg(long, default_value_t = 1_000_000)]
        max_requests: u64,
        /// Number of pods that were seeded.
        #[arg(long, default_value_t = 10_000)]
        pods: usize,
        /// Number of concurrent watches. Each row with watches has its own default.
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..=20_000))]
        watchers: Option<u16>,
        /// Changes per second in the row `watch-steady`.
        #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        changes: u32,
        /// Resident memory of the server without pods, in MB, which the row `memory` subtracts.
        #[arg(long, default_value_t = 0.0)]
        baseline_mb: f64,
    },
    /// Create pods, or ConfigMaps, for the other rows, and show how the server's memory grows.
    Seed {
        /// Number of objects.
        #[arg(long, default_value_t = 10_000)]
        pods: usize,
        /// Create ConfigMaps of this size in bytes instead of pods, to measure starts.
        #[arg(long, value_parser = clap::value_parser!(u32).range(500..=1_000_000))]
        bytes: Option<u32>,
    },
    /// Delete all objects of the harness.
    Clean,
    /// List the rows.
    Rows,
    #[command(flatten)]
    Scenarios(scenario::Command),
    /// Forward connections to servers, each to a random one, until interrupted.
    ///
    /// This tests a control plane of several members with a client that knows one address: write the address of
    /// --listen into its kubeconfig.
    Balance {
        /// Address and port to listen on.
        #[arg(long, value_name = "ADDR:PORT")]
        listen: SocketAddr,
        /// Address and port of a server. May be repeated, or contain several, separated by commas.
        #[arg(long, value_name = "ADDR:PORT", required = true, value_delimiter = ',')]
        to: Vec<SocketAddr>,
    },
    /// Start a server, measure the time until /readyz answers 200, and stop the server.
    Start {
        /// Stop the server with SIGKILL, so that the next start follows a crash.
        #[arg(long)]
        kill: bool,
        /// Command line of the server, after `--`.
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
}

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kubeconfig cannot be used.
    #[error(transparent)]
    Kubeconfig(#[from] kubeconfig::Error),
    /// A request failed, or the server cannot be reached.
    #[error(transparent)]
    Connection(#[from] connection::Error),
    /// No row has this name.
    #[error("no row {0:?}; `loadtest rows` lists them")]
    UnknownRow(String),
    /// A scenario, or its result, cannot be used.
    #[error(transparent)]
    Scenario(#[from] scenario::Error),
    /// The balancer cannot listen on its address.
    #[error("cannot listen: {0}")]
    Balance(#[source] std::io::Error),
    /// Figures cannot be written as JSON.
    #[error("cannot write JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Carries out a command. Returns whether all requests succeeded.
pub async fn run(args: Args) -> Result<bool, Error> {
    if let Command::Rows = args.command {
        for row in ROWS {
            println!("{:<16}  {}", row.name, row.about);
        }
        return Ok(true);
    }
    if let Command::Balance { listen, to } = &args.command {
        let listener = TcpListener::bind(*listen).await.map_err(Error::Balance)?;
        balance::run(listener, to).await.map_err(Error::Balance)?;
        return Ok(true);
    }
    let protocol = match args.http {
        Http::Http1 => Protocol::Http1,
        Http::Http2 => Protocol::Http2,
    };
    let processes = Processes { pids: args.pids.clone() };
    if let Command::Scenarios(command) = &args.command {
        let target = scenario::Target { kubeconfig: &args.kubeconfig, protocol, processes, namespace: &args.namespace };
        return Ok(scenario::execute(command, target).await?);
    }
    let connector = Arc::new(Connector::new(kubeconfig::load(&args.kubeconfig)?, protocol)?);
    let (clients, connections) = (args.clients.map(usize::from), usize::from(args.connections));
    let figures = match &args.command {
        Command::Seed { pods, bytes } => {
            let seeds = seed::Seeds { count: *pods, bytes: bytes.map(|bytes| bytes as usize) };
            seed::objects(seeds, &args.namespace, clients.unwrap_or(16), connections, &connector, &processes).await?
        }
        Command::Start { kill, command } => start::run(command, *kill, &connector).await?,
        Command::Clean => {
            seed::clean(&format!("{}-posted", args.namespace), &connector).await?;
            scenario::clean(&connector, &args.namespace).await?;
            return Ok(true);
        }
        Command::Rows | Command::Balance { .. } | Command::Scenarios(_) => return Ok(true),
        Command::Run { rows, seconds, warmup, max_requests, pods, watchers, changes, baseline_mb } => {
            let context = Context {
                connector,
                processes,
                namespace: args.namespace.clone(),
                pods: *pods,
                clients,
                connections,
                duration: span(*seconds),
                warmup: span(*warmup),
                requests_max: *max_requests,
                watchers: watchers.map(usize::from),
                changes_per_second: *changes,
                baseline_kib: (baseline_mb.max(0.0) * 1024.0) as u64,
            };
            return run_rows(rows, &context, args.json).await;
        }
    };
    print(&figures, args.json)?;
    Ok(figures.errors == 0)
}

/// Converts seconds to a duration between zero and a day. NaN becomes zero.
fn span(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.clamp(0.0, 86_400.0)).unwrap_or_default()
}

async fn run_rows(names: &[String], context: &Context, json: bool) -> Result<bool, Error> {
    if let Some(name) = names.iter().find(|name| *name != "all" && !ROWS.iter().any(|row| row.name == *name)) {
        return Err(Error::UnknownRow(name.clone()));
    }
    let mut is_clean = true;
    for row in ROWS.iter().filter(|row| names.iter().any(|name| name == row.name || name == "all")) {
        let figures = row.measure(context).await?;
        print(&figures, json)?;
        is_clean &= figures.errors == 0;
    }
    Ok(is_clean)
}

fn print(figures: &Figures, json: bool) -> Result<(), Error> {
    if json {
        println!("{}", serde_json::to_string(figures)?);
    } else {
        println!("{}", figures.text());
    }
    Ok(())
}
