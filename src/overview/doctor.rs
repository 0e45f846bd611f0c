//! `flotilla doctor`.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::Serialize;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::observation::{Observation, Output, StatusError, unix_seconds};
use super::view::{Certificate, Overview};
use crate::administration::{Client, Kubeconfig};
use crate::causes::with_causes;
use crate::limits;
use crate::pki::read_credential;
use crate::terminal::print;
use crate::{config, wall_clock};

// These limits are those of the alerts in `deploy/prometheus/alerts.yaml`.

/// Largest difference between clocks without a warning, in seconds.
const CLOCK_OFFSET: f64 = 0.5;
/// Smallest free part of a disk without a warning.
const DISK_FREE: f64 = 0.15;

/// Check a data directory, certificates, clocks and the connections between members.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Data directory to check [default: the usual one, if it exists].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Kubeconfig with the address of a member and the user [default: that of --data-dir, or else the usual one]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Ask no server: check only files.
    #[arg(long)]
    offline: bool,
    /// Form of the output.
    #[arg(long, short, value_name = "FORM", default_value = "text")]
    output: Output,
}

/// The verdict on a checked part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FindingVerdict {
    /// As it should be.
    Good,
    /// It may be broken, or will be.
    Warning,
    /// It is broken.
    Broken,
}

/// The result of one check.
#[derive(Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The verdict.
    pub verdict: FindingVerdict,
    /// The finding, in words.
    pub found: String,
    /// The advice; empty for a part that is good.
    pub advice: String,
}

impl Doctor {
    /// Checks, and prints the results. Returns whether nothing is broken.
    ///
    /// # Errors
    /// Standard output cannot be written to.
    pub fn run(&self) -> Result<bool, StatusError> {
        let directory = self.data_dir.clone().unwrap_or_else(config::default_data_dir);
        let mut findings = Vec::new();
        if self.data_dir.is_some() || directory.exists() {
            files(&directory, &mut findings);
        }
        let usual = || match self.data_dir {
            Some(_) => directory.join("admin.kubeconfig"),
            None => config::usual_kubeconfig(),
        };
        if !self.offline {
            server(&self.kubeconfig.clone().unwrap_or_else(usual), &mut findings);
        }
        let text = match self.output {
            Output::Json => serde_json::to_string_pretty(&findings).map_err(io::Error::from)? + "\n",
            Output::Text => findings.iter().map(Finding::shown).collect(),
        };
        print(&text)?;
        Ok(findings.iter().all(|finding| finding.verdict != FindingVerdict::Broken))
    }
}

impl Finding {
    fn good(found: impl Into<String>) -> Self {
        Self { verdict: FindingVerdict::Good, found: found.into(), advice: String::new() }
    }

    fn bad(verdict: FindingVerdict, found: impl Into<String>, advice: &str) -> Self {
        Self { verdict, found: found.into(), advice: advice.into() }
    }

    fn shown(&self) -> String {
        let Self { verdict, found, advice } = self;
        let word = match verdict {
            FindingVerdict::Good => "good",
            FindingVerdict::Warning => "WARNING",
            FindingVerdict::Broken => "BROKEN",
        };
        let advice = if advice.is_empty() { String::new() } else { format!("{:10}{advice}\n", "") };
        format!("{word:10}{found}\n{advice}")
    }
}

/// Checks a data directory and the certificates in it.
fn files(directory: &Path, findings: &mut Vec<Finding>) {
    let shown = directory.display();
    let mode = match fs::metadata(directory) {
        Ok(found) if found.is_dir() => found.permissions().mode(),
        Ok(_) => {
            let advice = "Name the directory that the server has as --data-dir.";
            findings.push(Finding::bad(FindingVerdict::Broken, format!("{shown} is no directory"), advice));
            return;
        }
        Err(error) => {
            let advice = "Name the directory that the server has as --data-dir, and run this as its user.";
            findings.push(Finding::bad(FindingVerdict::Broken, format!("{shown} cannot be read: {error}"), advice));
            return;
        }
    };
    findings.push(match mode & 0o077 {
        0 => Finding::good(format!("{shown} is its owner's alone")),
        _ => Finding::bad(
            FindingVerdict::Warning,
            format!("others may use {shown}, which holds Secrets and keys"),
            "Set its mode to 700, as the server does when it starts.",
        ),
    });
    let log = fs::read_dir(directory.join("wal")).is_ok_and(|mut entries| entries.next().is_some());
    findings.push(match log {
        true => Finding::good(format!("{shown} has a log")),
        false => Finding::bad(
            FindingVerdict::Broken,
            format!("{shown} has no log"),
            "No server has started on it, or the log was lost: see docs/backup.md, or let the member join anew.",
        ),
    });
    if let Ok(lock) = File::open(directory.join("lock")) {
        let held = lock.try_lock_shared().is_err();
        findings.push(Finding::good(if held { "a server runs on it" } else { "no server runs on it" }));
    }
    if let Ok(disk) = rustix::fs::statvfs(directory) {
        findings.push(room(disk.f_bavail as f64 * disk.f_frsize as f64, disk.f_blocks as f64 * disk.f_frsize as f64));
    }
    let entries = fs::read_dir(directory.join("pki")).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut paths: Vec<_> = entries.filter(|path| path.extension().is_some_and(|it| it == "crt")).collect();
    paths.sort();
    let now = unix_seconds(wall_clock::now());
    for path in paths {
        let pem = read_credential(&path).map_err(|error| error.to_string());
        let first = pem.and_then(|pem| CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|e| e.to_string()));
        findings.push(certificate(&path.display().to_string(), first.as_deref().map_err(String::as_str), now));
    }
}

/// Checks the remaining validity of a certificate.
fn certificate(name: &str, der: Result<&[u8], &str>, now: i64) -> Finding {
    let parsed = der.map_err(str::to_owned).and_then(|der| {
        X509Certificate::from_der(der).map(|(_, it)| it.validity().not_after.timestamp()).map_err(|e| e.to_string())
    });
    match parsed {
        Ok(end) => validity(name, end - now),
        Err(error) => Finding::bad(
            FindingVerdict::Broken,
            format!("{name} holds no certificate: {error}"),
            "Restore it from a copy of `pki`. If it is the server's own, remove it: a start makes it from its key.",
        ),
    }
}

/// Judges a certificate that ends in `left` seconds.
fn validity(name: &str, left: i64) -> Finding {
    let days = left.div_euclid(86_400);
    let soon = i64::try_from(limits::LEAF_RENEWAL.as_secs()).unwrap_or(i64::MAX);
    let advice = "See docs/runbooks/FlotillaCertificateEndsSoon.md: a running server renews its own.";
    match left {
        ..=0 => Finding::bad(FindingVerdict::Broken, format!("{name} has ended"), advice),
        left if left < soon => Finding::bad(FindingVerdict::Warning, format!("{name} ends in {days} days"), advice),
        _ => Finding::good(format!("{name} is valid for {days} days")),
    }
}

/// Judges the free space of a disk, in bytes.
fn room(free: f64, size: f64) -> Finding {
    let text = format!("{:.1} of {:.1} GiB are free on the disk", free / GIB, size / GIB);
    match free >= size * DISK_FREE {
        true => Finding::good(text),
        false => Finding::bad(FindingVerdict::Warning, text, "See docs/runbooks/FlotillaDiskNearlyFull.md."),
    }
}

const GIB: f64 = 1_073_741_824.0;

/// Checks a server, and its cluster as the server sees it.
fn server(kubeconfig: &Path, findings: &mut Vec<Finding>) {
    let read = match Kubeconfig::read(kubeconfig) {
        Ok(read) => read,
        Err(error) => {
            let advice = "Name a kubeconfig with --kubeconfig, or pass --offline.";
            findings.push(Finding::bad(FindingVerdict::Broken, with_causes(&error), advice));
            return;
        }
    };
    let now = unix_seconds(wall_clock::now());
    if let Some((chain, _)) = &read.certificate
        && let Some(first) = chain.first()
    {
        findings.push(certificate("the user's certificate in the kubeconfig", Ok(first), now));
    }
    let name = read.server.clone();
    match Client::new(read).and_then(|client| Observation::of(&client)) {
        Ok(observation) => {
            findings.extend(assess(&name, &observation.overview));
            findings.push(clock(observation.clock_offset_seconds));
        }
        Err(error) => findings.push(Finding::bad(
            FindingVerdict::Broken,
            with_causes(&error),
            "Check that the server runs, and read its log: see docs/runbooks/FlotillaDown.md.",
        )),
    }
}

/// Judges a member and its cluster by the overview of the member, which is called `name`.
pub fn assess(name: &str, overview: &Overview) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.push(match overview.ready {
        true => Finding::good(format!("{name} is ready")),
        false => {
            let advice = "It starts, stops, or reaches no majority: `/readyz?verbose` says which check fails.";
            let failing = overview.failing.join(", ");
            Finding::bad(FindingVerdict::Broken, format!("{name} is not ready: {failing}"), advice)
        }
    });
    for member in &overview.cluster.members {
        let name = &member.name;
        findings.push(match (member.reachable, member.votes) {
            (false, _) => {
                let advice = "See docs/runbooks/FlotillaMemberUnreachable.md.";
                Finding::bad(FindingVerdict::Broken, format!("the member {name} is not reachable"), advice)
            }
            (true, false) => {
                let advice = "Wait: the other members send it the data that it lacks.";
                Finding::bad(FindingVerdict::Warning, format!("the member {name} has no vote yet"), advice)
            }
            (true, true) => Finding::good(format!("the member {name} is reachable")),
        });
    }
    if overview.cluster.members.len() == 2 {
        let advice = "Let another one join: two members tolerate no failure.";
        findings.push(Finding::bad(FindingVerdict::Warning, "there are two members", advice));
    }
    for group in &overview.leaderless_groups {
        let advice = "See docs/runbooks/FlotillaNoLeader.md.";
        findings.push(Finding::bad(FindingVerdict::Broken, format!("nobody leads the group {group}"), advice));
    }
    for lag in overview.lags.iter().filter(|lag| lag.entries > limits::DOCTOR_LAG_ENTRIES) {
        let found = format!("{} lacks {} entries of the group {}", lag.member, lag.entries, lag.group);
        findings.push(Finding::bad(FindingVerdict::Warning, found, "See docs/runbooks/FlotillaReplicaLags.md."));
    }
    if overview.clock_behind_seconds > CLOCK_OFFSET {
        let found = format!("its clock is {:.1} s behind the cluster's", overview.clock_behind_seconds);
        findings.push(Finding::bad(FindingVerdict::Warning, found, "See docs/runbooks/FlotillaClockOff.md."));
    }
    if let Some(disk) = overview.disk {
        findings.push(room(disk.free_bytes as f64, disk.size_bytes as f64));
    }
    let left = |certificate: &Certificate| certificate.ends_seconds - overview.clock_seconds as i64;
    let certificates = overview.certificates.iter();
    findings.extend(certificates.map(|it| validity(&format!("the certificate {} of {name}", it.name), left(it))));
    findings
}

/// Judges the offset of a clock from this machine's, in seconds.
fn clock(offset: f64) -> Finding {
    match offset.abs() <= CLOCK_OFFSET {
        true => Finding::good("its clock agrees with this machine's"),
        false => {
            let found = format!("its clock is {offset:+.1} s off this machine's");
            Finding::bad(FindingVerdict::Warning, found, "See docs/runbooks/FlotillaClockOff.md.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiry_and_free_space_are_judged() {
        let verdict = |left| validity("it", left).verdict;
        assert_eq!(
            [verdict(0), verdict(86_400), verdict(86_400 * 90)],
            [FindingVerdict::Broken, FindingVerdict::Warning, FindingVerdict::Good]
        );
        assert_eq!(
            [room(5.0, 100.0).verdict, room(50.0, 100.0).verdict],
            [FindingVerdict::Warning, FindingVerdict::Good]
        );
        assert_eq!(certificate("it", Ok(b"none"), 0).verdict, FindingVerdict::Broken);
    }

    #[test]
    fn the_doctor_and_the_alerts_have_the_same_limits() {
        let alerts = include_str!("../../deploy/prometheus/alerts.yaml");
        let limit = |alert: &str| -> f64 {
            let rule = alerts.split_once(&format!("- alert: {alert}\n")).unwrap().1;
            rule.lines().nth(1).unwrap().rsplit([' ']).next().unwrap().parse().unwrap()
        };
        let limits = ["FlotillaDiskNearlyFull", "FlotillaClockOff", "FlotillaReplicaLags"].map(limit);
        assert_eq!(limits, [DISK_FREE, CLOCK_OFFSET, limits::DOCTOR_LAG_ENTRIES as f64]);
    }

    #[test]
    fn advice_stands_below_each_finding() {
        assert_eq!(Finding::good("a").shown(), "good      a\n");
        assert_eq!(Finding::bad(FindingVerdict::Broken, "b", "Do c.").shown(), "BROKEN    b\n          Do c.\n");
    }
}
