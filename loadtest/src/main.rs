//! The load harness: a Kubernetes client like any other that measures what a server's answers cost.
//!
//! It takes a kubeconfig and speaks HTTP/2 or HTTP/1.1, so that Flotilla and Kubernetes are measured alike. CPU time is
//! the server's own, read from `/proc` for the processes named by `--pid`, so the server must run on this machine.
//! Pin both sides to get figures that can be compared:
//!
//! ```text
//! taskset -c 0 flotilla serve ...
//! taskset -c 1 loadtest seed --pods 10000 --kubeconfig admin.kubeconfig --pid 4711
//! taskset -c 1 loadtest run get list post-pod --kubeconfig admin.kubeconfig --pid 4711 --seconds 5
//! ```
//!
//! Read in this order: [`cli`], [`kubeconfig`], [`connection`], [`operation`], [`rows`], [`watchers`], [`process`],
//! [`report`]; [`scenario`] is the other half, which asks at rates; [`balance`] stands for itself.

mod balance;
mod cli;
mod connection;
mod kubeconfig;
mod limits;
mod numbers;
mod objects;
mod operation;
mod process;
mod report;
mod rows;
mod scenario;
mod seed;
mod start;
mod watchers;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = cli::Args::parse();
    // One thread: the harness must not take the server's cores, and is pinned to one of its own.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("loadtest: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(cli::run(args)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("loadtest: {error}");
            ExitCode::FAILURE
        }
    }
}
