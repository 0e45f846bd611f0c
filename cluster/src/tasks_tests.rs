//! Tests of the effect that the end of each kind of task has.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;

use tokio::sync::oneshot;
use tokio::task::LocalSet;
use tokio::time::Instant;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_service_begins_again_after_a_panic_and_ends_by_itself() {
    let (runs, begun) = (Rc::new(Cell::new(0)), Instant::now());
    let counted = runs.clone();
    let work = async move || {
        counted.set(counted.get() + 1);
        assert!(counted.get() > 2, "the first two runs fail");
    };
    LocalSet::new().run_until(async { service("test", work).await }).await.unwrap();
    assert_eq!(runs.get(), 3);
    assert_eq!(begun.elapsed(), 2 * TASK_RESTART_DELAY, "it pauses after each failure");
}

#[tokio::test(start_paused = true)]
async fn what_is_held_during_a_pause_is_dropped_after_it() {
    let (runs, held) = (Cell::new(0), Rc::new(()));
    let work = async || {
        assert_eq!(Rc::strong_count(&held), 1, "no pause is going on");
        runs.set(runs.get() + 1);
        if runs.get() < 3 { ControlFlow::Continue("once more".to_owned()) } else { ControlFlow::Break(()) }
    };
    persist("test", work, || held.clone()).await;
    assert_eq!(runs.get(), 3);
}

#[tokio::test]
async fn an_owned_task_ends_when_it_is_dropped_and_a_detached_one_goes_on() {
    let (go, waiting) = oneshot::channel::<()>();
    let (held, ended) = oneshot::channel::<()>();
    let tasks = LocalSet::new();
    let work = async {
        let owned = owned("owned", async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        tokio::task::yield_now().await;
        drop(owned);
        ended.await.unwrap_err(); // the values that it held were dropped
        let (tell, told) = oneshot::channel();
        drop(detached_here("detached", async move { tell.send(waiting.await) }));
        go.send(()).unwrap();
        told.await.unwrap().unwrap();
    };
    tasks.run_until(work).await;
}

#[tokio::test]
async fn who_waits_for_a_task_learns_of_its_panic() {
    let panicked = detached("test", async { panic!("on purpose") }).await;
    assert!(panicked.unwrap_err().is_panic());
}
