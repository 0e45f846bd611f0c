//! `flotilla top`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::observation::{Observation, Output, StatusError, replacing_screen};
use super::rates::{Rate, Rates, ResourceRate};
use super::status::millis;
use super::view::{Overview, WatchLag};
use crate::administration::{Client, Kubeconfig, table};
use crate::config;
use crate::limits;
use crate::metrics::slowest::SlowRequest;
use crate::terminal::print;

/// Show the rates and durations of requests and watches at a member.
#[derive(Debug, Args)]
pub struct Top {
    /// Kubeconfig with the address of a member and the user.
    #[arg(long, value_name = "FILE", default_value_os_t = config::usual_kubeconfig())]
    kubeconfig: PathBuf,
    /// Form of the output.
    #[arg(long, short, value_name = "FORM", default_value = "text")]
    output: Output,
    /// Show the rates again and again, until interrupted.
    #[arg(long, short)]
    watch: bool,
    /// Time between two observations; the rates are those in between.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    interval: u64,
}

impl Top {
    /// Shows the rates, once or until interrupted.
    ///
    /// # Errors
    /// See [`StatusError`]. With `--watch` an error is printed, and the server is asked again.
    pub fn run(&self) -> Result<(), StatusError> {
        let client = Client::new(Kubeconfig::read(&self.kubeconfig)?)?;
        let mut before: Option<Overview> = None;
        loop {
            match Observation::of(&client) {
                Ok(Observation { overview, .. }) => {
                    if let Some(before) = before.replace(overview.clone())
                        && (!print(&self.text(&Rates::between(&before, &overview), &overview)?)? || !self.watch)
                    {
                        return Ok(());
                    }
                }
                Err(error) if self.watch => eprintln!("{error}"),
                Err(error) => return Err(error.into()),
            }
            std::thread::sleep(Duration::from_secs(self.interval));
        }
    }

    fn text(&self, rates: &Rates, now: &Overview) -> Result<String, StatusError> {
        match self.output {
            Output::Json => {
                let value = encoded(rates, now);
                let text =
                    if self.watch { serde_json::to_string(&value) } else { serde_json::to_string_pretty(&value) };
                Ok(text.map_err(std::io::Error::from)? + "\n")
            }
            Output::Text if self.watch => Ok(replacing_screen(shown(rates, now))),
            Output::Text => Ok(shown(rates, now)),
        }
    }
}

fn encoded(rates: &Rates, now: &Overview) -> serde_json::Value {
    let request = |it: &Rate| json!({"verb": it.verb, "resource": it.resource, "perSecond": it.per_second, "p50": it.p50, "p99": it.p99});
    let resource = |it: &ResourceRate| json!({"resource": it.resource, "followers": it.followers, "eventsPerSecond": it.events_per_second});
    json!({
        "member": now.cluster.told_by,
        "seconds": rates.seconds,
        "requestsPerSecond": rates.requests_per_second,
        "processors": rates.processors,
        "logBytesPerSecond": rates.log_bytes_per_second,
        "fsyncSeconds": rates.fsync_seconds,
        "readsInProgress": now.reads_in_progress,
        "writesInProgress": now.writes_in_progress,
        "watches": now.watches,
        "requests": rates.requests.iter().map(request).collect::<Vec<_>>(),
        "resources": rates.resources.iter().map(resource).collect::<Vec<_>>(),
        "watchesBehind": now.watches_behind,
        "slowest": now.slowest,
    })
}

fn shown(rates: &Rates, now: &Overview) -> String {
    let head = format!(
        "{}: {:.1} requests/s, {} reads and {} writes in progress, {} watches, {:.2} processors, {:.1} KiB/s of log, \
         fsync {}\n",
        now.cluster.told_by,
        rates.requests_per_second,
        now.reads_in_progress,
        now.writes_in_progress,
        now.watches,
        rates.processors,
        rates.log_bytes_per_second / 1024.0,
        millis(rates.fsync_seconds),
    );
    let request = |it: &Rate| {
        let per_second = format!("{:.1}", it.per_second);
        [it.verb.clone(), it.resource.clone(), per_second, millis(Some(it.p50)), millis(Some(it.p99))]
    };
    let resource =
        |it: &ResourceRate| [it.resource.clone(), it.followers.to_string(), format!("{:.1}", it.events_per_second)];
    let behind = |it: &WatchLag| [it.resource.clone(), it.selects.clone(), format!("{:.1} s", it.seconds)];
    let slow = |it: &SlowRequest| {
        [format!("{:.1} ms", it.seconds * 1_000.0), it.verb.clone(), it.path.clone(), it.user_agent.clone()]
    };
    let requests: Vec<_> = rates.requests.iter().take(limits::TOP_ROWS).map(request).collect();
    let resources: Vec<_> = rates.resources.iter().take(limits::TOP_ROWS).map(resource).collect();
    let watches: Vec<_> = now.watches_behind.iter().map(behind).collect();
    let slowest: Vec<_> = now.slowest.iter().take(limits::TOP_SLOW_REQUESTS).map(slow).collect();
    let mut text = format!(
        "{head}\n{}\n{}",
        table(["VERB", "RESOURCE", "PER SECOND", "P50", "P99"], &requests),
        table(["WATCHED", "FOLLOWERS", "EVENTS PER SECOND"], &resources)
    );
    if !watches.is_empty() {
        text += &format!("\n{}", table(["BEHIND", "SELECTS", "BY"], &watches));
    }
    if !slowest.is_empty() {
        text += &format!("\n{}", table(["SLOWEST", "VERB", "PATH", "CLIENT"], &slowest));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn counters_that_grew_are_shown_as_rates() {
        let (before, mut now) = (example(), example());
        now.uptime_seconds += 4.0;
        now.requests[0].buckets[0] += 8;
        let rates = Rates::between(&before, &now);
        let text = shown(&rates, &now);
        assert!(text.starts_with("a: 2.0 requests/s, 2 reads and 1 writes in progress, 40 watches"), "{text}");
        let line = |begins: &str| text.lines().find(|line| line.starts_with(begins)).unwrap_or_default();
        assert!(line("GET").contains(" 2.0 "), "{text}");
        assert!(line("750.0 ms").contains("/api/v1/namespaces/"), "{text}");
        assert_eq!(encoded(&rates, &now)["requests"][0]["perSecond"], 2.0);
    }
}
