//! Streams of actions: an open loop, which starts them at a rate, or a closed loop, in which each client waits for its
//! answer.

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::file::{Arrivals, Pace};
use super::result::Since;
use super::run::{Run, Stage};
use crate::limits;
use crate::numbers::Numbers;

/// How long a client of a closed loop pauses while the load of a phase excludes it.
const CLIENT_PAUSE: Duration = Duration::from_millis(20);

impl Pace {
    /// Returns the time from which latencies are measured.
    pub fn since(&self) -> Since {
        if self.rate.is_some() { Since::Due } else { Since::Sent }
    }

    /// Returns how many actions this part of the scenario has to do.
    fn total_of(&self, run: &Run) -> u64 {
        let of_part = |total: u64| (total + (run.part.of - run.part.number) as u64) / run.part.of as u64;
        self.total.map_or(u64::MAX, of_part)
    }
}

/// Starts a task for each action of a pace until the last phase ends, and waits for the tasks. A task gets the number
/// of its action, which is unique among all parts, and the time at which the action was due.
pub async fn run<F>(run: Rc<Run>, name: String, pace: Pace, task: impl Fn(usize, Instant) -> F + 'static)
where
    F: Future<Output = ()> + 'static,
{
    run.begun().await;
    match pace.rate {
        Some(rate) => open(run, &name, &pace, rate, task).await,
        None => closed(run, &pace, task).await,
    }
}

async fn open<F>(run: Rc<Run>, name: &str, pace: &Pace, rate: f64, task: impl Fn(usize, Instant) -> F)
where
    F: Future<Output = ()> + 'static,
{
    let per_second = rate / run.part.of as f64;
    let mut numbers = Numbers::named(run.seed ^ run.part.number as u64, name);
    let places = Arc::new(Semaphore::new(limits::IN_FLIGHT_MAX));
    let mut tasks = JoinSet::new();
    // Parts start their actions in turn.
    let mut amount = (run.part.number - 1) as f64 / run.part.of as f64;
    let mut number = run.part.number - 1;
    for _ in 0..pace.total_of(&run) {
        let Some(at) = run.load.when(amount / per_second) else { break };
        let due = run.began() + Duration::from_secs_f64(at);
        let now = Instant::now();
        // If actions are due more often than the timer fires, those that are due by then start together.
        if due > now && !run.waited(due.max(now + limits::TIMER_STEP)).await {
            break;
        }
        // Further actions wait until others end, and their latency includes the wait.
        let Ok(place) = places.clone().acquire_owned().await else { break };
        run.recorder.borrow_mut().lag(due.elapsed());
        let work = task(number, due);
        tasks.spawn_local(async move {
            work.await;
            drop(place);
        });
        while tasks.try_join_next().is_some() {}
        number += run.part.of;
        amount += match pace.arrivals {
            Arrivals::Random => numbers.gap(),
            Arrivals::Even => 1.0,
        };
    }
    while tasks.join_next().await.is_some() {}
}

async fn closed<F>(run: Rc<Run>, pace: &Pace, task: impl Fn(usize, Instant) -> F)
where
    F: Future<Output = ()> + 'static,
{
    let next = std::cell::Cell::new(0);
    let total = pace.total_of(&run);
    let clients = pace.clients.unwrap_or(1);
    let loops = run.part.numbers(clients).map(|client| {
        let (run, next, task) = (&run, &next, &task);
        async move {
            while !run.is_over() && next.get() < total {
                if client as f64 >= clients as f64 * run.load.at(run.seconds()) {
                    run.waited(Instant::now() + CLIENT_PAUSE).await;
                    continue;
                }
                let number = next.replace(next.get() + 1) as usize * run.part.of + run.part.number - 1;
                task(number, Instant::now()).await;
            }
        }
    });
    futures_util::future::join_all(loops).await;
}

/// Enters each phase at its time, and then the stage after the last one.
pub async fn phases(run: &Run, lengths: &[f64]) {
    let mut at = 0.0;
    for (number, seconds) in lengths.iter().enumerate() {
        run.enter(Stage::Phase(number));
        at += seconds;
        run.timer.until(run.began() + Duration::from_secs_f64(at)).await;
    }
    run.enter(Stage::Over);
}
