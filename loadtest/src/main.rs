//! The load harness: a Kubernetes client that measures the cost of requests for a server.
//!
//! It needs a kubeconfig and uses HTTP/2 or HTTP/1.1, so it measures Flotilla and Kubernetes alike. It reads the
//! server's CPU time from `/proc` for the processes named by `--pid`, so the server must run on this machine. For
//! comparable figures, pin both sides to different cores:
//!
//! ```text
//! taskset -c 0 flotilla serve ...
//! taskset -c 1 loadtest seed --pods 10000 --kubeconfig admin.kubeconfig --pid 4711
//! taskset -c 1 loadtest run get list post-pod --kubeconfig admin.kubeconfig --pid 4711 --seconds 5
//! ```
//!
//! Read in this order: [`cli`], [`kubeconfig`], [`connection`], [`operation`], [`rows`], [`watchers`], [`process`],
//! [`report`]. Then [`scenario`], which sends requests at given rates. [`balance`] and [`backend`] are independent of
//! the rest.

mod backend;
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
    // One thread, so that the harness can be pinned to one core and leaves the others to the server.
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
