//! The commands about scenarios and their results.

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

/// What to do with scenarios.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scenario: many kinds of clients at rates that do not wait for answers, with checks of what they see.
    Scenario {
        /// A name of `loadtest scenarios`, or the path of a TOML file.
        scenario: String,
        /// Change the file: PATH=VALUE, as in `actors.nodes.count=100`.
        #[arg(long, value_name = "PATH=VALUE")]
        set: Vec<String>,
        /// Multiply all counts and rates.
        #[arg(long)]
        scale: Option<f64>,
        /// Seconds of all phases together; each is made longer or shorter.
        #[arg(long)]
        seconds: Option<f64>,
        /// What chance is drawn from: the same seed asks the same at the same times.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Do a part of the scenario, as in 1/4, while other processes do the others.
        #[arg(long, value_name = "NUMBER/COUNT", default_value = "1/1")]
        part: Part,
        /// When the first phase begins, in seconds of Unix time; for parts, which begin together.
        #[arg(long, value_name = "SECONDS")]
        begin_at: Option<f64>,
        /// Give up after so many seconds, whatever is under way.
        #[arg(long, value_name = "SECONDS")]
        limit: Option<f64>,
        /// Run it so often; results are numbered then.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        repeat: u32,
        /// Write the result to this file.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Write a report with charts to this file.
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        /// Leave what was made.
        #[arg(long)]
        keep: bool,
        /// Tell no progress.
        #[arg(long)]
        quiet: bool,
    },
    /// List the scenarios that come along, or show one.
    Scenarios {
        /// Show the file of this one.
        name: Option<String>,
    },
    /// Show a result again: in words, or with charts.
    Report {
        /// A file that `--out` wrote.
        result: PathBuf,
        /// Write a report with charts to this file.
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Add up the results of parts.
    Merge {
        /// Files that `--out` wrote, one of each part.
        #[arg(required = true)]
        results: Vec<PathBuf>,
        /// Write the sum to this file.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Hold two sides against each other: ratios, and which exceed the noise of repeated runs.
    Compare {
        /// A file that `--out` wrote, several separated by commas, or a directory of them.
        a: String,
        /// The other side.
        b: String,
    },
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario.
    #[error(transparent)]
    Scenario(#[from] file::Error),
    /// A result.
    #[error(transparent)]
    Result(#[from] result::Error),
    /// The kubeconfig.
    #[error(transparent)]
    Kubeconfig(#[from] kubeconfig::Error),
    /// The server cannot be used.
    #[error(transparent)]
    Connection(#[from] connection::Error),
    /// A thread cannot be started, or a file not be written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// HTTP/1.1 was asked for.
    #[error("scenarios speak HTTP/2: many requests share a connection")]
    Http1,
}

/// Whom to ask.
pub struct Target<'a> {
    /// The kubeconfig file.
    pub kubeconfig: &'a Path,
    /// The version of HTTP.
    pub protocol: Protocol,
    /// The server's processes.
    pub processes: Processes,
    /// The namespace for everything.
    pub namespace: &'a str,
}

/// Does what a command says; whether all went without errors.
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

/// The text of a scenario that comes along, or of a file.
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
    // What makes no sense is said before a server is asked.
    file::parse(&plan.text, &plan.changes)?;
    if begin_at.is_some_and(|at| at < SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()) {
        eprintln!("--begin-at has passed already: the first phase begins as soon as everything is there");
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

/// `result.json` becomes `result-2.json`.
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

/// The results of one side of a comparison.
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
    /// As the command line has them.
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
    fn what_comes_along_can_be_run() {
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
