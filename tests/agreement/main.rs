//! Agreement with Kubernetes: sends the requests of scenarios to the real binary, and compares each step with the
//! answer of Kubernetes. README.md in this folder describes scenarios, and the environment variables of this program.
//!
//! This is one comparison and not a list of tests. Its last line is `N of M steps agree`. It fails if fewer steps agree
//! than the floor demands.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests and their stand-ins may block")]

mod cases;
mod client;
mod compare;
mod json;
mod members;
mod normal;
mod path;
mod protobuf;
mod scenario;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "other test programs use the rest")]
mod support;
mod transcripts;
mod yaml;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cases::{Case, Demand};
use client::Servers;
use compare::Seen;
use json::Json;
use members::Members;

/// How many scenarios run at the same time. They wait most of the time.
const SIDE_BY_SIDE: usize = 4;
/// How many times a scenario runs at most. It runs again while servers are busy.
const ATTEMPTS_MAX: usize = 4;
/// By how much the waits of a scenario are multiplied when it runs again because too few steps of its area agree.
const SLOWNESS: u32 = 5;
/// The statuses of a server that is temporarily unable to serve: too many requests, no leader, or no majority in time.
const BUSY: [i64; 3] = [429, 503, 504];
/// The largest number of differences of a step that are shown.
const DIFFERENCES_MAX: usize = 12;
/// The area of the floor for transcripts of kubectl.
const TRANSCRIPTS: &str = "transcripts";
/// How many bytes of the output of a server that has ended are shown.
const MESSAGES_BYTES_MAX: usize = 4_000;

/// The settings: the scenarios to compare, and how.
struct Settings {
    cases: PathBuf,
    /// The areas and scenarios to compare. If it is empty, all are compared.
    names: Vec<String>,
    /// The numbers of servers. The scenarios run through each of them.
    servers: Vec<usize>,
    /// Whether to compare also the areas that the floor marks as long.
    is_all: bool,
    shows_differences: bool,
    /// Whether to compare the output of kubectl, too.
    has_kubectl: bool,
    side_by_side: usize,
}

impl Settings {
    /// Reads the settings from environment variables and arguments. Returns `None` for `--list`, which asks only for
    /// the names of tests.
    fn read() -> Option<Settings> {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agreement");
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let only = variable("AGREEMENT_ONLY").unwrap_or_default();
        let mut names: Vec<String> = only.split_ascii_whitespace().map(str::to_owned).collect();
        let mut arguments = env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match &*argument {
                "--list" => return None,
                "--test-threads" | "--format" | "--color" | "--skip" | "-Z" => drop(arguments.next()),
                _ if argument.starts_with('-') => {}
                _ => names.push(argument),
            }
        }
        let servers = variable("AGREEMENT_SERVERS").unwrap_or_else(|| "1 3".into());
        Some(Settings {
            cases: variable("AGREEMENT_CASES").map_or(own, PathBuf::from),
            shows_differences: variable("AGREEMENT_TOLD").is_some(),
            has_kubectl: variable("AGREEMENT_KUBECTL").is_some(),
            names,
            servers: servers.split_ascii_whitespace().filter_map(|count| count.parse().ok()).collect(),
            is_all: variable("AGREEMENT_ALL").is_some(),
            side_by_side: variable("AGREEMENT_JOBS").and_then(|jobs| jobs.parse().ok()).unwrap_or(SIDE_BY_SIDE),
        })
    }

    /// Returns whether to compare an area through this number of servers.
    fn includes(&self, area: &str, servers: usize, floor: &[Demand]) -> bool {
        let demand = floor.iter().find(|demand| demand.area == area && demand.servers == servers);
        match demand {
            Some(demand) => !demand.is_long || self.is_all || !self.names.is_empty(),
            // An area without a demand is compared through one server.
            None => servers == 1 || self.is_all,
        }
    }

    /// Returns the releases of kubectl whose transcripts are compared through this number of servers.
    fn transcripts<'a>(&self, servers: usize, floor: &'a [Demand]) -> Vec<&'a Demand> {
        let is_chosen =
            self.has_kubectl && (self.names.is_empty() || self.names.iter().any(|name| name == TRANSCRIPTS));
        let wanted = |demand: &&Demand| demand.servers == servers && (!demand.is_long || self.is_all);
        floor.iter().filter(|demand| is_chosen && demand.area == TRANSCRIPTS).filter(wanted).collect()
    }
}

/// How many steps agree, and how many were compared.
#[derive(Default, Clone, Copy)]
struct Count {
    agree: usize,
    steps: usize,
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        self.agree += other.agree;
        self.steps += other.steps;
    }
}

fn main() -> ExitCode {
    let Some(settings) = Settings::read() else { return ExitCode::SUCCESS };
    let (cases, floor) = match (cases::read(&settings.cases, &settings.names), cases::floor(&settings.cases)) {
        (Ok(cases), Ok(floor)) => (cases, floor),
        (Err(error), _) | (_, Err(error)) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let (mut total, mut has_failed) = (Count::default(), false);
    for servers in &settings.servers {
        let chosen: Vec<&Case> = cases.iter().filter(|case| settings.includes(&case.area, *servers, &floor)).collect();
        let scripts = settings.transcripts(*servers, &floor);
        if chosen.is_empty() && scripts.is_empty() {
            continue;
        }
        let members = if *servers == 1 { Members::one() } else { Members::three(&settings.cases) };
        let mut counts = compare_all(&settings, &chosen, &members.servers(), *servers, 1);
        compare_slowly(&settings, &chosen, &mut counts, &floor, &members.servers(), *servers);
        has_failed |= report(&chosen, &counts, &floor, *servers, &settings);
        counts.iter().for_each(|count| total += *count);
        for demand in scripts {
            has_failed |= compare_commands(&settings, demand, &members);
        }
        for messages in members.fallen() {
            has_failed = true;
            let start = messages.floor_char_boundary(messages.len().saturating_sub(MESSAGES_BYTES_MAX));
            println!("a server has ended, or does not answer any more:\n{}", &messages[start..]);
        }
    }
    println!("{} of {} steps agree", total.agree, total.steps);
    if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// If fewer steps of an area agree than must, runs its scenarios again that do not agree. The better result counts.
/// Scenarios wait for seconds of real time, which may be too few on a busy machine, so all waits are longer this time.
fn compare_slowly(
    settings: &Settings,
    cases: &[&Case],
    counts: &mut [Count],
    floor: &[Demand],
    servers: &Servers,
    number: usize,
) {
    let short: Vec<&str> = areas(cases, counts, floor, number, settings)
        .into_iter()
        .filter(|(_, count, least)| count.agree < *least)
        .map(|(area, ..)| area)
        .collect();
    let again: Vec<usize> = (0..cases.len())
        .filter(|index| counts[*index].agree < counts[*index].steps && short.contains(&&*cases[*index].area))
        .collect();
    if again.is_empty() {
        return;
    }
    println!("too few steps of {short:?} agree: {} scenarios run again, with longer waits", again.len());
    let chosen: Vec<&Case> = again.iter().map(|index| cases[*index]).collect();
    let slowly = compare_all(settings, &chosen, servers, number, SLOWNESS);
    for (index, count) in again.into_iter().zip(slowly) {
        if count.agree > counts[index].agree {
            counts[index] = count;
        }
    }
}

/// Runs scenarios, several at the same time, with waits multiplied by `slowness`. Returns the count of each.
fn compare_all(settings: &Settings, cases: &[&Case], servers: &Servers, number: usize, slowness: u32) -> Vec<Count> {
    let (next, counts) = (AtomicUsize::new(0), Mutex::new(vec![Count::default(); cases.len()]));
    std::thread::scope(|scope| {
        for _ in 0..settings.side_by_side {
            scope.spawn(|| {
                while let Some((index, case)) =
                    Some(next.fetch_add(1, Ordering::SeqCst)).and_then(|index| Some((index, cases.get(index)?)))
                {
                    let (count, lines) = compare(settings, case, servers, number, slowness);
                    // Holds the lock while it prints, so that all lines of a scenario stay together.
                    let mut counts = counts.lock().expect("no comparison panics while it holds the lock");
                    counts[index] = count;
                    lines.iter().for_each(|line| println!("{line}"));
                }
            });
        }
    });
    counts.into_inner().expect("no comparison panics while it holds the lock")
}

/// Runs a scenario. Returns the count, and a line about each step that does not agree. If a server was temporarily
/// unable to serve, as after a change of leader, the scenario runs again.
fn compare(settings: &Settings, case: &Case, servers: &Servers, number: usize, slowness: u32) -> (Count, Vec<String>) {
    let stem: String = case.name.chars().take(40).collect();
    let mut last = (Count::default(), Vec::new());
    for attempt in 0..ATTEMPTS_MAX {
        let run = (std::process::id() as usize + number + 10 * attempt + 100 * slowness as usize) % 100_000;
        let namespace = format!("p-{stem}-{run:05}").to_lowercase().replace('_', "-");
        let seen = scenario::run(servers, &case.scenario, &namespace, slowness);
        let is_busy = |(recorded, seen): (&Seen, &Seen)| seen.status != recorded.status && BUSY.contains(&seen.status);
        let was_busy = case.recorded.iter().zip(&seen).any(is_busy);
        last = judge(settings, case, seen);
        if !was_busy {
            break;
        }
    }
    last
}

/// Compares the answers of a scenario. Returns the count, and lines about steps that do not agree.
fn judge(settings: &Settings, case: &Case, seen: Vec<Seen>) -> (Count, Vec<String>) {
    let mut count = Count { agree: 0, steps: case.recorded.len() };
    let mut lines = Vec::new();
    if seen.len() != case.recorded.len() {
        count.steps = seen.len().max(case.recorded.len());
        lines.push(format!("{} ran {} steps, but {} are recorded", case.name, seen.len(), case.recorded.len()));
    }
    for (recorded, seen) in case.recorded.iter().zip(seen) {
        let differences = differences(case, recorded, seen);
        if differences.is_empty() {
            count.agree += 1;
            continue;
        }
        lines.push(format!("{} step {} {}", case.name, recorded.step, recorded.request));
        if settings.shows_differences {
            lines.extend(differences.iter().take(DIFFERENCES_MAX).map(|difference| format!("    {difference}")));
            if differences.len() > DIFFERENCES_MAX {
                lines.push(format!("    and {} more", differences.len() - DIFFERENCES_MAX));
            }
        }
    }
    (count, lines)
}

/// Compares the output of a release of kubectl. Returns whether the comparison has failed: an error stopped it, or
/// fewer commands agree than the floor demands.
fn compare_commands(settings: &Settings, demand: &Demand, members: &Members) -> bool {
    let Demand { release, servers, steps: least, .. } = demand;
    let Some(client) = transcripts::client(release) else {
        println!("skipped: kubectl {release} is not installed");
        return false;
    };
    let (kubeconfig, addresses) = (members.kubeconfig(), members.servers().addresses);
    let compared = transcripts::compare(
        &settings.cases,
        &client,
        &kubeconfig,
        &addresses,
        settings.side_by_side,
        settings.shows_differences,
    );
    match compared {
        Ok((commands, lines)) => {
            lines.iter().for_each(|line| println!("{line}"));
            let transcripts::Commands { agree, all } = commands;
            println!(
                "kubectl {release}, {servers} server(s): {agree} of {all} commands agree, at least {least} expected"
            );
            agree < *least
        }
        Err(error) => {
            println!("kubectl {release}: {error}");
            true
        }
    }
}

fn differences(case: &Case, recorded: &Seen, seen: Seen) -> Vec<String> {
    let steps = case.scenario.get("steps").and_then(Json::as_list).unwrap_or_default();
    let options = steps.get(recorded.step).and_then(Json::as_map).and_then(<[_]>::first).map(|(_, options)| options);
    let wanted = Seen {
        step: recorded.step,
        request: recorded.request.clone(),
        status: recorded.status,
        headers: recorded.headers.clone(),
        body: options.map_or_else(|| recorded.body.clone(), |options| scenario::sorted(recorded.body.clone(), options)),
    };
    if recorded.request.contains("/openapi/") {
        return seen.without_prose().differences(&wanted.without_prose());
    }
    seen.differences(&wanted)
}

/// Returns each area with its count, and how many of its steps must agree.
fn areas<'a>(
    cases: &[&'a Case],
    counts: &[Count],
    floor: &[Demand],
    servers: usize,
    settings: &Settings,
) -> Vec<(&'a str, Count, usize)> {
    let mut areas: Vec<(&str, Count)> = Vec::new();
    for (case, count) in cases.iter().zip(counts) {
        match areas.iter_mut().find(|(area, _)| *area == case.area) {
            Some((_, sum)) => *sum += *count,
            None => areas.push((&case.area, *count)),
        }
    }
    let least = |area: &str, steps: usize| {
        let demand = floor.iter().find(|demand| demand.area == area && demand.servers == servers);
        // The floor is for the whole area. Scenarios that are named by themselves must agree in every step.
        let is_whole = settings.names.is_empty() || settings.names.iter().any(|name| *name == area);
        if is_whole { demand.map_or(0, |demand| demand.steps) } else { steps }
    };
    areas.into_iter().map(|(area, count)| (area, count, least(area, count.steps))).collect()
}

/// Prints how many steps of each area agree. Returns whether an area has fewer than the floor demands, or whether a
/// scenario differs that was named by itself.
fn report(cases: &[&Case], counts: &[Count], floor: &[Demand], servers: usize, settings: &Settings) -> bool {
    let mut has_failed = false;
    for (area, Count { agree, steps }, least) in areas(cases, counts, floor, servers, settings) {
        println!("{area}, {servers} server(s): {agree} of {steps} steps agree, at least {least} expected");
        has_failed |= agree < least;
    }
    has_failed
}
