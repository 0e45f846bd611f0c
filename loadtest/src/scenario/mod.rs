//! Scenarios: many kinds of clients that send requests at given rates, with checks of the answers that clients see.
//!
//! A scenario is a TOML file ([`file`]) with actors, which act at a rate, and phases, which raise and lower these rates
//! ([`load`]). Requests of a rate are sent when they are due, whether earlier ones have been answered or not
//! ([`stream`]). Their latency counts from when they were due ([`record`]), so a stall of the server adds to the
//! latency of every request that it delays. Deliveries of watches are compared with earlier ones, and in the end with
//! lists ([`check`], [`follower`]). One process runs a whole scenario or a part of it. Results can be combined
//! ([`merge`]) and compared ([`compare`]).

mod actors;
mod amounts;
mod check;
mod command;
mod compare;
mod file;
mod follower;
mod html;
mod items;
mod load;
mod mark;
mod merge;
mod pool;
mod progress;
mod record;
mod recovery;
mod result;
mod run;
mod sample;
mod stream;
mod summary;
mod svg;
mod timer;

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::task::{JoinSet, LocalSet};

pub use actors::clean;
pub use command::{Command, Error, Target, execute};

use self::file::{Actor, Changes, Scenario};
use self::load::Load;
use self::progress::Progress;
use self::record::Recorder;
use self::result::{Checks, PhaseResult, RunResult, SCHEMA, Sample};
use self::run::{Part, Run};
use self::sample::Sampler;
use crate::connection::{self, Call, Connector};
use crate::limits;
use crate::operation::micros;
use crate::process::Processes;

/// The scenarios of the harness: names and files.
const SCENARIOS: &[(&str, &str)] = &[
    ("heartbeats", include_str!("../../scenarios/heartbeats.toml")),
    ("kubelets", include_str!("../../scenarios/kubelets.toml")),
    ("pod-churn", include_str!("../../scenarios/pod-churn.toml")),
    ("list-storm", include_str!("../../scenarios/list-storm.toml")),
    ("fan-out", include_str!("../../scenarios/fan-out.toml")),
    ("informer-herd", include_str!("../../scenarios/informer-herd.toml")),
    ("reconnect-herd", include_str!("../../scenarios/reconnect-herd.toml")),
    ("burst", include_str!("../../scenarios/burst.toml")),
    ("apply-storm", include_str!("../../scenarios/apply-storm.toml")),
    ("custom-heavy", include_str!("../../scenarios/custom-heavy.toml")),
    ("slow-watchers", include_str!("../../scenarios/slow-watchers.toml")),
    ("mixed", include_str!("../../scenarios/mixed.toml")),
    ("sandboxes", include_str!("../../scenarios/sandboxes.toml")),
];

/// How a scenario is run, in addition to its file.
struct Plan {
    /// The text of the file.
    pub text: String,
    /// The changes of the command line.
    pub changes: Changes,
    /// The seed of random choices.
    pub seed: u64,
    /// The part that this process runs.
    pub part: Part,
    /// When the first phase starts, in seconds of Unix time. `None` for as soon as the setup is complete.
    pub begin_at: Option<f64>,
    /// How long the run may take before it is aborted.
    pub limit: Option<Duration>,
    /// The namespace for all objects.
    pub namespace: String,
    /// Whether the objects are not deleted afterwards.
    pub keep: bool,
    /// Whether no progress is shown.
    pub quiet: bool,
}

/// Runs a scenario against a server.
async fn run(plan: &Plan, connector: &Arc<Connector>, processes: &Processes) -> Result<RunResult, Error> {
    let scenario = file::parse(&plan.text, &plan.changes)?;
    let local = LocalSet::new();
    local.run_until(whole(plan, &scenario, connector, processes)).await
}

async fn whole(
    plan: &Plan,
    scenario: &Scenario,
    connector: &Arc<Connector>,
    processes: &Processes,
) -> Result<RunResult, Error> {
    let deadline = plan.limit.map(|limit| Instant::now() + limit);
    let phases = phase_results(scenario);
    let run = Rc::new(begun(plan, scenario, connector, &phases)?);
    ready(&run).await?;
    let server = version(&run).await?;
    let is_alone = plan.part.of == 1;
    if is_alone {
        actors::clean(connector, &plan.namespace).await?;
    }
    let progress = Progress::new(!plan.quiet);
    progress.say(&format!("{}: creating objects before the first phase", scenario.name));
    actors::set_up(&run, &scenario.setup, connector).await?;
    let (tasks, endless) = prepare(&run, scenario).await?;
    let begin = match plan.begin_at {
        Some(at) => run.instant((at * 1e6) as u64),
        None => Instant::now(),
    };
    run.timer.until(begin).await;
    let started_micros = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, micros);
    run.begin(Instant::now());
    let lengths: Vec<f64> = scenario.phases.iter().map(|phase| phase.seconds).collect();
    let drain = Duration::from_secs_f64(scenario.drain_seconds);
    let work = work(&run, tasks, &lengths, drain, deadline);
    let (gave_up, samples) = watched(&run, &progress, Sampler::new(processes.clone()), work, &phases).await;
    progress.say("comparing watches with lists");
    let compared = actors::compare(&run).await;
    drop(endless);
    let result = RunResult {
        schema: SCHEMA,
        scenario: scenario.name.clone(),
        about: scenario.about.clone(),
        definition: plan.text.clone(),
        changes: plan.changes.words(),
        seed: plan.seed,
        part: [plan.part.number as u32, plan.part.of as u32],
        started_micros,
        seconds: scenario.seconds(),
        window_seconds: run.recorder.borrow().window_seconds(),
        server,
        phases,
        operations: run.recorder.borrow().operations(),
        lag: run.recorder.borrow().lag_pairs(),
        samples,
        checks: checks(&run, compared),
        gave_up,
    };
    if is_alone && !plan.keep {
        progress.say("deleting objects");
        actors::clean(connector, &plan.namespace).await?;
    }
    Ok(result)
}

/// Prepares all actors. Reflectors come last, because other actors define the resources that they watch.
async fn prepare(run: &Rc<Run>, scenario: &Scenario) -> Result<(Vec<actors::Task>, JoinSet<()>), Error> {
    let (mut tasks, mut endless) = (Vec::new(), JoinSet::new());
    let watches = |actor: &Actor| matches!(actor, Actor::Reflector(_));
    let (last, first): (Vec<_>, Vec<_>) = scenario.actors.iter().partition(|(_, actor)| watches(actor));
    for (name, actor) in first.into_iter().chain(last) {
        let prepared = actors::prepare(run, name, actor).await?;
        tasks.extend(prepared.tasks);
        prepared.endless.into_iter().for_each(|task| drop(endless.spawn_local(task)));
    }
    Ok((tasks, endless))
}

/// Makes a run that has not started.
fn begun(plan: &Plan, scenario: &Scenario, connector: &Arc<Connector>, phases: &[PhaseResult]) -> std::io::Result<Run> {
    let span = |phase: &PhaseResult| (Duration::from_secs_f64(phase.from), Duration::from_secs_f64(phase.to));
    let warmups = phases.iter().filter(|phase| phase.warmup).map(span).collect();
    let reconnects = scenario.phases.iter().enumerate().filter(|(_, phase)| phase.reconnect).map(|(number, _)| number);
    Run::new(
        connector.clone(),
        (plan.namespace.clone(), plan.part, plan.seed),
        (Load::of(scenario), Recorder::new(scenario.seconds(), warmups)),
        (scenario.connections, reconnects.collect()),
    )
}

/// Runs all phases, then waits for the tasks that have started. Returns whether the run was aborted.
async fn work(
    run: &Rc<Run>,
    tasks: Vec<actors::Task>,
    lengths: &[f64],
    drain: Duration,
    deadline: Option<Instant>,
) -> bool {
    let mut running = JoinSet::new();
    tasks.into_iter().for_each(|task| drop(running.spawn_local(task)));
    let all = async {
        // Streams with a total may end before the last phase.
        let over = async {
            stream::phases(run, lengths).await;
            tokio::time::sleep(drain).await;
        };
        let ended = async {
            while running.join_next().await.is_some() {}
            let mut stages = run.stages();
            let _ = stages.wait_for(|stage| *stage == run::Stage::Over).await;
            run.ended().await;
        };
        tokio::select! {
            biased;
            () = ended => false,
            () = over => true,
        }
    };
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline.into(), all).await.unwrap_or(true),
        None => all.await,
    }
}

/// Awaits the work, and meanwhile takes samples of the processes and shows progress.
async fn watched(
    run: &Rc<Run>,
    progress: &Progress,
    sampler: Sampler,
    work: impl Future<Output = bool>,
    phases: &[PhaseResult],
) -> (bool, Vec<Sample>) {
    let mut samples = vec![sampler.look(run).await];
    let every = Duration::from_secs_f64(run.recorder.borrow().window_seconds().max(0.5));
    let looking = async {
        loop {
            tokio::time::sleep(every).await;
            samples.push(sampler.look(run).await);
            progress.show(run, phases, &samples);
        }
    };
    let gave_up = tokio::select! {
        gave_up = work => gave_up,
        () = looking => false,
    };
    run.enter(run::Stage::Over);
    samples.push(sampler.look(run).await);
    (gave_up, samples)
}

/// Waits until the server is ready.
///
/// # Errors
/// Fails if the server cannot be reached, or does not become ready.
async fn ready(run: &Run) -> Result<(), Error> {
    let (start, check) = (Instant::now(), Call::get("/readyz"));
    loop {
        match run.must(&check, &[]).await {
            Err(connection::Error::Refused { .. }) if start.elapsed() < limits::START_WAIT => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            other => return Ok(other.map(drop)?),
        }
    }
}

async fn version(run: &Run) -> Result<String, Error> {
    let answer = run.must(&Call::get("/version").keeping_body(), &[]).await?;
    let version = serde_json::from_slice::<serde_json::Value>(&answer.body).unwrap_or_default();
    Ok(version["gitVersion"].as_str().unwrap_or("a server of unknown version").to_owned())
}

fn phase_results(scenario: &Scenario) -> Vec<PhaseResult> {
    let mut from = 0.0;
    let phases = scenario.phases.iter().map(|phase| {
        let result = PhaseResult {
            name: phase.name.clone(),
            from,
            to: from + phase.seconds,
            load: phase.load.ends(),
            warmup: phase.warmup,
        };
        from = result.to;
        result
    });
    phases.collect()
}

fn checks(run: &Run, compared: u64) -> Checks {
    let checked = &run.checked;
    Checks {
        events: checked.events.get(),
        compared,
        watches: run.followers.borrow().len() as u64,
        answers: checked.answers.get(),
        expired: checked.expired.get(),
        resumed: checked.resumed.get(),
        violations: checked.violations.borrow().clone(),
    }
}
