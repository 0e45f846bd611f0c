//! `flotilla status`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::observation::{Observation, Output, StatusError, replacing_screen};
use super::requests::Requests;
use super::view::{Disk, Lag, Overview};
use crate::administration::{Client, Kubeconfig, cluster_tables, table};
use crate::config;
use crate::limits;
use crate::terminal::print;

/// Show the state of a member and its cluster.
#[derive(Debug, Args)]
pub struct Status {
    /// Kubeconfig with the address of a member and the user.
    #[arg(long, value_name = "FILE", default_value_os_t = config::usual_kubeconfig())]
    kubeconfig: PathBuf,
    /// Form of the output.
    #[arg(long, short, value_name = "FORM", default_value = "text")]
    output: Output,
    /// Show the state again and again, until interrupted.
    #[arg(long, short)]
    watch: bool,
    /// Time between two observations with --watch.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    interval: u64,
}

impl Status {
    /// Shows the state, once or until interrupted.
    ///
    /// # Errors
    /// See [`StatusError`]. With `--watch` an error is printed, and the server is asked again.
    pub fn run(&self) -> Result<(), StatusError> {
        let client = Client::new(Kubeconfig::read(&self.kubeconfig)?)?;
        loop {
            let text = match Observation::of(&client) {
                Ok(observation) => self.text(&observation)?,
                Err(error) if self.watch => {
                    eprintln!("{error}");
                    String::new()
                }
                Err(error) => return Err(error.into()),
            };
            if !print(&text)? || !self.watch {
                return Ok(());
            }
            std::thread::sleep(Duration::from_secs(self.interval));
        }
    }

    fn text(&self, observation: &Observation) -> Result<String, StatusError> {
        let json = |encoded: serde_json::Result<String>| encoded.map_err(std::io::Error::from);
        match self.output {
            Output::Json if self.watch => Ok(json(serde_json::to_string(observation))? + "\n"),
            Output::Json => Ok(json(serde_json::to_string_pretty(observation))? + "\n"),
            Output::Text if self.watch => Ok(replacing_screen(shown(observation))),
            Output::Text => Ok(shown(observation)),
        }
    }
}

fn shown(Observation { overview, clock_offset_seconds }: &Observation) -> String {
    let mut text = cluster_tables(&overview.cluster) + "\n";
    text += &table(["MEMBER ASKED", "VALUE"], &facts(overview, *clock_offset_seconds));
    let lag = |lag: &Lag| [lag.group.clone(), lag.member.clone(), lag.entries.to_string()];
    if !overview.lags.is_empty() {
        let lags: Vec<_> = overview.lags.iter().map(lag).collect();
        text += &format!("\n{}", table(["GROUP", "MEMBER", "LACKS"], &lags));
    }
    let request = |it: &Requests| {
        [it.verb.clone(), it.resource.clone(), it.count.to_string(), millis(Some(it.p50)), millis(Some(it.p99))]
    };
    let requests: Vec<_> = overview.requests.iter().take(limits::STATUS_REQUESTS).map(request).collect();
    text += &format!("\n{}", table(["VERB", "RESOURCE", "COUNT", "P50", "P99"], &requests));
    if !overview.warnings.is_empty() {
        let warning = |it: &super::Warning| {
            let ago = (overview.clock_seconds - it.at_seconds).max(0.0);
            [format!("{ago:.0} s"), it.target.clone(), it.text.clone()]
        };
        let warnings: Vec<_> = overview.warnings.iter().take(limits::STATUS_WARNINGS).map(warning).collect();
        text += &format!("\n{}", table(["BEFORE", "WARNED BY", "TEXT"], &warnings));
    }
    text
}

fn facts(it: &Overview, clock_offset_seconds: f64) -> Vec<[String; 2]> {
    let disk = |disk: Disk| format!("{} of {}", bytes(disk.free_bytes as f64), bytes(disk.size_bytes as f64));
    let ready = if it.ready { "yes".to_owned() } else { format!("no: {}", it.failing.join(", ")) };
    let facts = [
        ("ready", ready),
        ("version", it.version.clone()),
        ("clock ahead by", millis(Some(clock_offset_seconds))),
        ("clock behind the cluster's by", millis(Some(it.clock_behind_seconds))),
        ("memory", it.memory_bytes.map_or("-".to_owned(), bytes)),
        ("disk free", it.disk.map_or("-".to_owned(), disk)),
        ("log", format!("{} in {} files", bytes(it.log.disk_bytes as f64), it.log.segments)),
        ("fsync, mean", millis(it.log.fsync_mean_seconds())),
        ("history", format!("{} changes, {}", it.history.changes, bytes(it.history.bytes as f64))),
        ("reads in progress", it.reads_in_progress.to_string()),
        ("writes in progress", it.writes_in_progress.to_string()),
        ("watches", it.watches.to_string()),
    ];
    facts.map(|(name, value)| [name.to_owned(), value]).into()
}

/// Formats bytes for people.
fn bytes(value: f64) -> String {
    format!("{:.1} MiB", value / 1_048_576.0)
}

/// Formats seconds as milliseconds, `None` as a dash.
pub(super) fn millis(seconds: Option<f64>) -> String {
    seconds.map_or("-".to_owned(), |it| format!("{:.1} ms", it * 1_000.0))
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn unknown_facts_are_shown_as_a_dash() {
        let mut overview = Overview { memory_bytes: None, ..example() };
        overview.log.fsyncs = 0;
        let text = shown(&Observation { overview, clock_offset_seconds: -0.25 });
        let line = |begins: &str| text.lines().find(|line| line.starts_with(begins)).unwrap_or_default().to_owned();
        assert!(line("memory ").ends_with(" -") && line("fsync, mean").ends_with(" -"), "{text}");
        assert!(line("clock ahead by").ends_with("-250.0 ms"), "{text}");
        assert!(line("1000 s").contains("a <warning>"), "{text}");
        assert!(text.contains("default   b        12\n"), "{text}");
    }
}
