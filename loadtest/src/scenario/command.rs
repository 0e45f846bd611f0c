//! The commands for scenarios and their results.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Subcommand;

use super::file::{self, Changes};
use super::result::{self, RunResult};
use super::run::Part;
use super::{Plan, SCENARIOS, compare, html, merge, run, summary};
use crate::connection::{self, Connector, Protocol};
use crate::kubeconfig;
use crate::process::Processes;

/// A command for scenarios or their results.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scenario: many kinds of clients, at rates that do not depend on answers, with checks of the answers that
    /// clients see.
    Scenario {
        /// Name of a scenario, as `loadtest scenarios` lists them, or path of a TOML file.
        scenario: String,
        /// Change a value of the file: PATH=VALUE, as in `actors.nodes.count=100`.
        #[arg(long, value_name = "PATH=VALUE")]
        set: Vec<String>,
        /// Factor for all counts and rates.
        #[arg(long)]
        scale: Option<f64>,
        /// Seconds of all phases together. Each phase is lengthened or shortened by the same factor.
        #[arg(long)]
        seconds: Option<f64>,
        /// Seed of random choices. Runs with the same seed send the same requests at the same times.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Run one part of the scenario, as in 1/4, while other processes run the others.
        #[arg(long, value_name = "NUMBER/COUNT", default_value = "1/1")]
        part: Part,
        /// Start of the first phase, in seconds of Unix time. Parts of a scenario need the same start.
        #[arg(long, value_name = "SECONDS")]
        begin_at: Option<f64>,
        /// Seconds after which the run is aborted.
        #[arg(long, value_name = "SECONDS")]
        limit: Option<f64>,
        /// Number of runs. If it is not 1, the names of result files get numbers.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        repeat: u32,
        /// File for the result, as JSON.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// File for a report with charts, as HTML.
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        /// Do not delete the objects afterwards.
        #[arg(long)]
        keep: bool,
        /// Do not show progress.
        #[arg(long)]
        quiet: bool,
    },
    /// List the scenarios of the harness, or show one.
    Scenarios {
        /// Name of the scenario to show.
        name: Option<String>,
    },
    /// Show a result, as text or as a report with charts.
    Report {
        /// File that `--out` wrote.
        result: PathBuf,
        /// File for a report with charts, as HTML.
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Combine the results of all parts of a scenario.
    Merge {
        /// Files that `--out` wrote, one for each part.
        #[arg(required = true)]
        results: Vec<PathBuf>,
        /// File for the combined result, as JSON.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Compare two sides: show ratios, and which of them exceed the noise of repeated runs.
    Compare {
        /// First side: a file that `--out` wrote, several separated by commas, or a directory of them.
        a: String,
        /// Second side, in the same form.
        b: String,
    },
}

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario cannot be used.
    #[error(transparent)]
    Scenario(#[from] file::Error),
    /// A result cannot be used.
    #[error(transparent)]
    Result(#[from] result::Error),
    /// The kubeconfig cannot be used.
    #[error(transparent)]
    Kubeconfig(#[from] kubeconfig::Error),
    /// A request failed, or the server cannot be reached.
    #[error(transparent)]
    Connection(#[from] connection::Error),
    /// A thread cannot be started, or a file cannot be written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// HTTP/1.1 was requested, which scenarios do not support.
    #[error("scenarios need HTTP/2, because many requests share a connection")]
    Http1,
}

/// The server to use.
pub struct Target<'a> {
    /// The path of the kubeconfig.
    pub kubeconfig: &'a Path,
    /// The version of HTTP.
    pub protocol: Protocol,
    /// The processes of the server.
    pub processes: Processes,
    /// The namespace for all objects.
    pub namespace: &'a str,
}

/// Carries out a command. Returns whether nothing failed and no promise was broken.
pub async fn execute(command: &Command, target: Target<'_>) -> Result<bool, Error> {
    match command {
        Command::Scenario { .. } => scenario(command, target).await,
        Command::Scenarios { name: None } => {
            for (name, text) in SCENARIOS {
                println!("{name:<16}  {}", file::parse(text, &Changes::default())?.about);
            }
            Ok(true)
        }
        Command::Scenarios { name: Some(name) } => {
            print!("{}", load(name)?);
            Ok(true)
        }
        Command::Report { result, html } => {
            let result = RunResult::read(result)?;
            show(&result, html.as_deref())?;
            Ok(result.is_clean())
        }
        Command::Merge { results, out } => {
            let parts: Result<Vec<_>, _> = results.iter().map(|path| RunResult::read(path)).collect();
            let sum = merge::merge(parts?)?;
            sum.write(out)?;
            show(&sum, None)?;
            Ok(sum.is_clean())
        }
        Command::Compare { a, b } => {
            print!("{}", compare::text(&side(a)?, &side(b)?));
            Ok(true)
        }
    }
}

/// Returns the text of a scenario of the harness, or of a file.
fn load(name: &str) -> Result<String, file::Error> {
    if name.ends_with(".toml") {
        return std::fs::read_to_string(name).map_err(|error| file::Error::Read(name.into(), error));
    }
    let found = SCENARIOS.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| file::Error::Unknown(name.into()))
}

async fn scenario(command: &Command, target: Target<'_>) -> Result<bool, Error> {
    let Command::Scenario {
        scenario,
        set,
        scale,
        seconds,
        seed,
        part,
        begin_at,
        limit,
        repeat,
        out,
        html,
        keep,
        quiet,
    } = command
    else {
        return Ok(true);
    };
    if target.protocol == Protocol::Http1 {
        return Err(Error::Http1);
    }
    let plan = Plan {
        text: load(scenario)?,
        changes: Changes { set: set.clone(), scale: *scale, seconds: *seconds },
        seed: *seed,
        part: *part,
        begin_at: *begin_at,
        limit: limit.and_then(|limit| Duration::try_from_secs_f64(limit).ok()),
        namespace: target.namespace.into(),
        keep: *keep,
        quiet: *quiet,
    };
    // Reports a wrong scenario before it sends any request.
    file::parse(&plan.text, &plan.changes)?;
    if begin_at.is_some_and(|at| at < SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()) {
        eprintln!("--begin-at has passed already: the first phase begins as soon as the setup is complete");
    }
    let connector = Arc::new(Connector::new(kubeconfig::load(target.kubeconfig)?, target.protocol)?);
    let mut is_clean = true;
    for number in 1..=*repeat {
        let result = run(&plan, &connector, &target.processes).await?;
        let numbered = |path: &PathBuf| if *repeat > 1 { with_number(path, number) } else { path.clone() };
        if let Some(path) = out.as_ref().map(numbered) {
            result.write(&path)?;
        }
        show(&result, html.as_ref().map(numbered).as_deref())?;
        is_clean &= result.is_clean();
    }
    Ok(is_clean)
}

/// Returns the path with a number, as `result-2.json` for `result.json`.
fn with_number(path: &Path, number: u32) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|extension| format!(".{}", extension.to_string_lossy())).unwrap_or_default();
    path.with_file_name(format!("{stem}-{number}{extension}"))
}

fn show(result: &RunResult, html: Option<&Path>) -> Result<(), Error> {
    print!("{}", summary::text(result));
    if let Some(path) = html {
        std::fs::write(path, html::page(result))?;
    }
    Ok(())
}

/// Reads the results of one side of a comparison.
fn side(paths: &str) -> Result<Vec<RunResult>, Error> {
    let mut files: Vec<PathBuf> = Vec::new();
    for path in paths.split(',') {
        let path = PathBuf::from(path);
        if path.is_dir() {
            let entries: Result<Vec<_>, _> =
                std::fs::read_dir(&path)?.map(|entry| entry.map(|entry| entry.path())).collect();
            files.extend(entries?.into_iter().filter(|path| path.extension().is_some_and(|it| it == "json")));
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files.iter().map(|path| RunResult::read(path)).collect::<Result<_, _>>()?)
}

impl Changes {
    /// Returns the changes as options of the command line.
    pub fn words(&self) -> Vec<String> {
        let mut words: Vec<String> = self.set.iter().map(|set| format!("--set {set}")).collect();
        words.extend(self.scale.map(|scale| format!("--scale {scale}")));
        words.extend(self.seconds.map(|seconds| format!("--seconds {seconds}")));
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_of_the_harness_are_valid() {
        for (name, text) in SCENARIOS {
            let scenario = file::parse(text, &Changes::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(scenario.name, *name);
        }
        assert!(matches!(load("nonsense"), Err(file::Error::Unknown(_))));
        assert!(matches!(load("nonsense.toml"), Err(file::Error::Read(..))));
    }

    #[test]
    fn repeated_results_are_numbered() {
        assert_eq!(with_number(Path::new("a/b.json"), 2), Path::new("a/b-2.json"));
    }
}
