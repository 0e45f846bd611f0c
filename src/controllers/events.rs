//! Removes events when they expire: `--event-ttl-seconds` after they were written last.
//!
//! Revisions rise with the time of the write, so that the expired events are exactly those below one revision.
//! Between two searches nothing is kept but the age of the oldest event.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flotilla_cluster::{Object, Revision, Selection};
use futures_util::stream::{self, StreamExt as _};

use super::agent::Agent;
use crate::limits;
use crate::metrics::queues::QueueMetrics;
use crate::scan::scan;
use crate::served::Served;
use crate::status::ApiResult;
use crate::tables::Target;
use crate::wall_clock;

/// Removes expired events, for ever.
pub async fn run(agent: Rc<Agent>, _: QueueMetrics) -> ApiResult<()> {
    let served = agent.resource("", "events")?;
    let Some(age) = agent.settings.event_ttl else { return std::future::pending().await };
    loop {
        let oldest = remove(&agent, &served, expired_below(wall_clock::now(), age)).await;
        tokio::time::sleep(pause(wall_clock::now(), oldest, age)).await;
    }
}

/// Returns the revision below which all events have expired, given that an event lives for `age`.
fn expired_below(now: SystemTime, age: Duration) -> Revision {
    let written = now.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(age);
    Revision::from_unix_ms(u64::try_from(written.as_millis()).unwrap_or(u64::MAX))
}

/// Returns the time until the next search, when the oldest event has expired.
fn pause(now: SystemTime, oldest: Option<Revision>, age: Duration) -> Duration {
    let shortest = (age / 60).clamp(limits::EVENT_PAUSE_MIN, limits::EVENT_PAUSE_MAX);
    let end = oldest.map(|oldest| UNIX_EPOCH + Duration::from_millis(oldest.unix_ms()) + age);
    let rest = end.map_or(age, |end| end.duration_since(now).unwrap_or_default());
    rest.clamp(shortest, age.max(shortest))
}

/// Removes the events below a revision. Returns the least revision of the others. `None` if there are none.
async fn remove(agent: &Agent, served: &Arc<Served>, end: Revision) -> Option<Revision> {
    let table = agent.registry.tables.table(served);
    if table.is_empty() {
        return None;
    }
    let mut chunks = scan(&table.snapshot(), Selection::default());
    let mut oldest: Option<Revision> = None;
    // If the snapshot expires, the next search finds the rest.
    while let Some(Ok(events)) = chunks.next_yielding().await {
        let (expired, kept): (Vec<_>, Vec<_>) = events.into_iter().partition(|event| event.revision() < end);
        oldest = oldest.into_iter().chain(kept.iter().map(|event| event.revision())).min();
        let removals = stream::iter(&expired).map(|event| remove_one(agent, served, event));
        let mut removals = pin!(removals.buffer_unordered(limits::EVENT_REMOVALS));
        while removals.next().await.is_some() {}
    }
    oldest
}

/// Removes an event, unless it has changed meanwhile. A failure is left to the next search.
async fn remove_one(agent: &Agent, served: &Arc<Served>, event: &Object) {
    let (namespace, name) = (event.key().namespace().unwrap_or(""), event.key().name());
    let target = Target::object(served, namespace, name);
    if let Err(error) = agent.registry.remove_expired(target, event).await {
        tracing::debug!(namespace, name, %error, "an expired event cannot be removed yet");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_800_000_000 + seconds)
    }

    fn written(seconds: u64) -> Revision {
        Revision::from_unix_ms((1_800_000_000 + seconds) * 1_000)
    }

    #[test]
    fn events_expire_in_the_order_of_their_writes() {
        let end = expired_below(at(3_600), HOUR);
        assert!(written(0) >= end, "it has lived for an hour, and not longer");
        assert!(written(1) > end && written(0).previous() < end);
        assert_eq!(expired_below(UNIX_EPOCH, HOUR), Revision::FIRST);
    }

    #[test]
    fn the_next_search_finds_what_expires_next() {
        let pause = |now, oldest: Option<u64>| pause(at(now), oldest.map(written), HOUR).as_secs();
        assert_eq!(pause(0, None), 3_600, "an event that is written now lives for an hour");
        assert_eq!(pause(1_000, Some(0)), 2_600);
        assert_eq!(pause(3_599, Some(0)), 60, "searches are not more frequent");
        assert_eq!(pause(9_000, Some(0)), 60);
        assert_eq!(super::pause(at(0), None, Duration::from_millis(10)), limits::EVENT_PAUSE_MIN);
    }
}
