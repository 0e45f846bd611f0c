//! `flotilla status`.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::requests::{self, Requests};
use super::samples;
use crate::administration::messages::ClusterView;
use crate::administration::{Client, ClientError, Kubeconfig, cluster_tables, table};
use crate::pki::KubeconfigError;
use crate::{config, wall_clock};

/// Types of requests that are shown as text.
const REQUESTS_SHOWN: usize = 12;

/// Show how a member and its cluster are.
#[derive(Debug, Args)]
pub struct Status {
    /// Kubeconfig that says where a member serves and who asks: a member of the group system:masters.
    #[arg(long, value_name = "FILE", default_value_os_t = config::usual_kubeconfig())]
    kubeconfig: PathBuf,
    /// How it is written.
    #[arg(long, short, value_name = "FORM", default_value = "text")]
    output: Output,
    /// Show it again and again, until interrupted.
    #[arg(long, short)]
    watch: bool,
    /// Time between two looks with --watch.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    interval: u64,
}

/// How something is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// Tables and sentences, for people.
    Text,
    /// JSON, for programs: one line a look with --watch.
    Json,
}

/// Why a command about the state of a member failed.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// It is not known whom to ask.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// The server does not tell.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server does not show its metrics.
    #[error("the server answers with {0} at /metrics")]
    Metrics(u16),
    /// What is to be told cannot be written.
    #[error("cannot write to standard output")]
    Output(#[from] io::Error),
}

/// A member and its cluster at one moment. What a member does not tell is absent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Overview {
    /// Its cluster, as it sees it.
    pub(super) cluster: ClusterView,
    /// Whether it is ready for requests.
    pub(super) ready: bool,
    /// How far its clock is ahead of this machine's at least, in seconds; negative when it is behind.
    pub(super) clock_offset_seconds: Option<f64>,
    /// Log entries that members lack in groups that it leads.
    pub(super) lags: Vec<Lag>,
    /// Resident memory of its process.
    memory_bytes: Option<f64>,
    /// Room that is left on its disk.
    pub(super) disk_free_bytes: Option<f64>,
    /// Size of its disk.
    pub(super) disk_size_bytes: Option<f64>,
    /// Mean time in which its log was made durable.
    fsync_mean_seconds: Option<f64>,
    /// Changes in its history window.
    history_changes: Option<f64>,
    /// Memory of these.
    history_bytes: Option<f64>,
    /// Requests in progress, without watches.
    requests_in_progress: Option<f64>,
    /// Watches and other requests that last.
    watches: f64,
    /// Requests by type.
    requests: Vec<Requests>,
}

/// What a member lacks.
#[derive(Debug, Serialize)]
pub(super) struct Lag {
    pub(super) group: String,
    pub(super) member: String,
    pub(super) entries: f64,
}

impl Status {
    /// Shows it, once or until interrupted.
    ///
    /// # Errors
    /// See [`StatusError`]. With `--watch` a server that does not answer is told and asked again.
    pub fn run(&self) -> Result<(), StatusError> {
        let client = Client::new(Kubeconfig::read(&self.kubeconfig)?)?;
        loop {
            let looked = Overview::look(&client);
            let text = match looked {
                Ok(overview) => self.written(&overview)?,
                Err(error) if self.watch => {
                    eprintln!("{error}");
                    String::new()
                }
                Err(error) => return Err(error),
            };
            let mut out = io::stdout().lock();
            match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                written => written?,
            }
            if !self.watch {
                return Ok(());
            }
            std::thread::sleep(Duration::from_secs(self.interval));
        }
    }

    fn written(&self, overview: &Overview) -> Result<String, StatusError> {
        match self.output {
            Output::Json if self.watch => Ok(serde_json::to_string(overview).map_err(io::Error::from)? + "\n"),
            Output::Json => Ok(serde_json::to_string_pretty(overview).map_err(io::Error::from)? + "\n"),
            // A terminal is cleared, so that the new picture takes the place of the former one.
            Output::Text if self.watch && io::stdout().is_terminal() => {
                Ok(format!("\x1b[H\x1b[2J{}", overview.shown()))
            }
            Output::Text => Ok(overview.shown()),
        }
    }
}

impl Overview {
    /// Asks a member.
    ///
    /// # Errors
    /// See [`StatusError`].
    pub(super) fn look(client: &Client) -> Result<Self, StatusError> {
        let cluster = client.status()?;
        let ready = client.text("/readyz")?.0 == 200;
        let before = seconds();
        let (code, page) = client.text("/metrics")?;
        if code != 200 {
            return Err(StatusError::Metrics(code));
        }
        Ok(Self::of(cluster, ready, &page, (before, seconds())))
    }

    /// Out of what a member told between two times of this machine's clock.
    fn of(cluster: ClusterView, ready: bool, page: &str, (before, after): (f64, f64)) -> Self {
        let sum = |name| samples::sum(page, name);
        let lag = |sample: samples::Sample| Lag {
            group: sample.label("group").to_owned(),
            member: sample.label("member").to_owned(),
            entries: sample.value,
        };
        let fsyncs = sum("flotilla_wal_fsyncs_total").filter(|count| *count > 0.0);
        Self {
            cluster,
            ready,
            // Its clock was read at some time in between, which cannot be told apart from an offset.
            clock_offset_seconds: sum("flotilla_clock_seconds").map(|told| told - told.clamp(before, after)),
            lags: samples::named(page, "flotilla_group_lag_entries").map(lag).collect(),
            memory_bytes: sum("process_resident_memory_bytes"),
            disk_free_bytes: sum("flotilla_disk_free_bytes"),
            disk_size_bytes: sum("flotilla_disk_size_bytes"),
            fsync_mean_seconds: sum("flotilla_wal_fsync_seconds_total").zip(fsyncs).map(|(time, count)| time / count),
            history_changes: sum("flotilla_history_changes"),
            history_bytes: sum("flotilla_history_bytes"),
            requests_in_progress: sum("apiserver_current_inflight_requests"),
            watches: sum("apiserver_longrunning_requests").unwrap_or_default(),
            requests: requests::by_type(page),
        }
    }

    fn shown(&self) -> String {
        let bytes = |value: Option<f64>| value.map_or("-".to_owned(), |it| format!("{:.1} MiB", it / 1_048_576.0));
        let number = |value: Option<f64>| value.map_or("-".to_owned(), |it| format!("{it:.0}"));
        let millis = |value: Option<f64>| value.map_or("-".to_owned(), |it| format!("{:.1} ms", it * 1_000.0));
        let facts = [
            ["ready".to_owned(), if self.ready { "yes" } else { "no" }.to_owned()],
            ["clock ahead by".to_owned(), millis(self.clock_offset_seconds)],
            ["memory".to_owned(), bytes(self.memory_bytes)],
            ["disk free".to_owned(), format!("{} of {}", bytes(self.disk_free_bytes), bytes(self.disk_size_bytes))],
            ["fsync, mean".to_owned(), millis(self.fsync_mean_seconds)],
            ["history".to_owned(), format!("{} changes, {}", number(self.history_changes), bytes(self.history_bytes))],
            ["requests in progress".to_owned(), number(self.requests_in_progress)],
            ["watches".to_owned(), number(Some(self.watches))],
        ];
        let lag = |lag: &Lag| [lag.group.clone(), lag.member.clone(), number(Some(lag.entries))];
        let lags: Vec<_> = self.lags.iter().map(lag).collect();
        let request = |it: &Requests| {
            [it.verb.clone(), it.resource.clone(), number(Some(it.count)), millis(Some(it.p50)), millis(Some(it.p99))]
        };
        let requests: Vec<_> = self.requests.iter().take(REQUESTS_SHOWN).map(request).collect();
        let mut text = cluster_tables(&self.cluster) + "\n" + &table(["MEMBER ASKED", "VALUE"], &facts);
        if !lags.is_empty() {
            text += &format!("\n{}", table(["GROUP", "MEMBER", "LACKS"], &lags));
        }
        text + "\n" + &table(["VERB", "RESOURCE", "COUNT", "P50", "P99"], &requests)
    }
}

/// Seconds since 1970 by this machine's clock.
fn seconds() -> f64 {
    wall_clock::now().duration_since(UNIX_EPOCH).map_or(0.0, |since: Duration| since.as_secs_f64())
}

/// The same as a number to compare ends of certificates with.
pub(super) fn unix_seconds(now: SystemTime) -> i64 {
    now.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overview(page: &str) -> Overview {
        let cluster = ClusterView {
            cluster: String::new(),
            told_by: "a".into(),
            members: Vec::new(),
            groups: Vec::new(),
            shards: Vec::new(),
        };
        Overview::of(cluster, true, page, (100.0, 101.0))
    }

    #[test]
    fn a_clock_is_off_by_what_asking_does_not_explain() {
        let offset = |told: &str| overview(&format!("flotilla_clock_seconds {told}\n")).clock_offset_seconds;
        assert_eq!((offset("100.5"), offset("98"), offset("104")), (Some(0.0), Some(-2.0), Some(3.0)));
    }

    #[test]
    fn what_is_not_told_is_a_dash() {
        let text = overview("flotilla_group_lag_entries{group=\"g1\",member=\"b\"} 7\n").shown();
        assert!(text.contains("memory                 -\n"), "{text}");
        assert!(text.contains("g1      b        7\n"), "{text}");
    }
}
