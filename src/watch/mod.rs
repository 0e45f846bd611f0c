//! Streams the changes of a resource to clients, after its existing objects if asked for (API concepts, "Efficient
//! detection of changes").
//!
//! A watch is a cursor into the change log of its table. It queues no events: changes that a slow client has not taken
//! yet are still in the log.

mod encode;
mod end;
mod event;
mod reminder;
mod stream;
mod wake_batch;

use std::sync::Arc;
use std::time::Duration;

use flotilla_cluster::{Compacted, Interest, Revision, Table};
use rand::Rng as _;
use tokio::time::Instant;

use crate::drain::Drain;
use crate::limits;
use crate::registry::{Listing, Page, Registry};
use crate::representation::Show;
use crate::request::query::parse_revision;
use crate::selector::{FieldOperator, FieldRequirement, Selection};
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::transport::ConnectionId;

use encode::Encoder;
use end::End;
pub use stream::Stream;
use wake_batch::BatchedWaker;

/// The start of a watch.
enum Start {
    /// With these objects, then the changes after them.
    Objects(Page),
    /// With the changes after a revision.
    After(Revision),
    /// With an error event: the answer is a stream even then.
    Failed(ApiError),
}

/// Begins a watch of the objects that `listing` selects in a namespace, or in all (`""`). Its events have the
/// representation of `show`, and `connection` sends them. `server` ends the watch early.
///
/// # Errors
/// 400 for an invalid revision, and the errors of [`Registry::list`] if the watch begins with objects.
pub async fn begin(
    registry: &Arc<Registry>,
    served: &Arc<Served>,
    (namespace, listing): (&str, &Listing),
    show: Show<'_>,
    (server, connection): (Drain, ConnectionId),
) -> ApiResult<Stream> {
    let table = registry.tables.table(served);
    let start = start(registry, &table, served, namespace, listing).await?;
    let encoder = Encoder::new(Arc::clone(registry), Arc::clone(served), show)?;
    let end = End::of(server, served);
    let lifetime = lifetime(listing.timeout_seconds, registry.watch_time_min);
    let waker = BatchedWaker::of(connection);
    Ok(Stream::new(table, interest(namespace, listing), start, encoder, (listing, lifetime), end, waker))
}

/// Returns how long a watch lasts: as its client asks, else a random time between `least` and its double, so that
/// watches do not all end at once. If `least` is zero, a watch whose client states no time lasts as long as the client
/// wants.
fn lifetime(asked: Option<i64>, least: Duration) -> Duration {
    let lifetime = match asked {
        Some(seconds @ 1..) => Duration::from_secs(seconds.unsigned_abs()),
        _ if least.is_zero() => limits::WATCH_TIME_MAX,
        _ => least.mul_f64(rand::rng().random_range(1.0..2.0)),
    };
    lifetime.min(limits::WATCH_TIME_MAX) // a time beyond what clocks can show would panic
}

/// Returns which changes may concern a watch, so that others do not wake it.
fn interest(namespace: &str, listing: &Listing) -> Interest {
    let namespace = match namespace {
        "" => listing.selection.exact_field("metadata.namespace"),
        own => Some(own),
    };
    let fields = listing.selection.fields.0.iter();
    let mut exact =
        fields.filter(|r| !r.field.starts_with("metadata.") && listing.selection.exact_field(&r.field).is_some());
    Interest {
        namespace: namespace.map(Into::into),
        name: listing.selection.exact_field("metadata.name").map(Into::into),
        field: exact.next().filter(|r| !r.value.is_empty()).map(|r| (r.field.clone(), r.value.clone())),
    }
}

/// Returns whether every change that concerns an interest is selected, so that objects need not be compared: the
/// selection demands only the interest's namespace and name, which no object ever changes.
fn decides(interest: &Interest, selection: &Selection) -> bool {
    let is_decided = |requirement: &FieldRequirement| {
        let known = match requirement.field.as_str() {
            "metadata.name" => &interest.name,
            "metadata.namespace" => &interest.namespace,
            _ => return false,
        };
        requirement.operator == FieldOperator::Equals && known.as_ref() == Some(&requirement.value)
    };
    selection.labels.0.is_empty() && selection.converted.0.is_empty() && selection.fields.0.iter().all(is_decided)
}

/// Decides where a watch begins, by the rules for its resource version (API concepts, "Semantics for watch").
async fn start(
    registry: &Registry,
    table: &Arc<Table>,
    served: &Served,
    namespace: &str,
    listing: &Listing,
) -> ApiResult<Start> {
    let revision = parse_revision(&listing.revision).map_err(ApiError::unknown)?;
    let (selection, wanted) = (listing.selection.clone(), listing.revision.clone());
    let all = Listing { selection, revision: wanted, ..Listing::default() };
    match (listing.initial_events, revision) {
        (Some(true), _) => {
            let page = registry.list(served, namespace, &all).await;
            Ok(page.map_or_else(Start::Failed, Start::Objects))
        }
        (Some(false), 0) => {
            registry.tables.barrier(table).await?;
            registry.tables.renew_expired_revision(table).await?;
            Ok(Start::After(table.revision()))
        }
        (None, 0) => registry.list(served, namespace, &all).await.map(Start::Objects),
        (_, after) => {
            let after = Revision::new(after);
            // All later writes must get revisions above `after`, in every shard.
            if table.is_spread() && table.revision() < after {
                let deadline = Instant::now() + limits::WATCH_BEGIN_WAIT;
                // The revision may not be reached yet.
                let _ = registry.tables.store.reach(table, after, deadline).await;
            }
            let floor = table.horizon();
            if after < floor {
                return Ok(Start::Failed(lost(after, Compacted { floor })));
            }
            Ok(Start::After(after))
        }
    }
}

/// Returns the error of a watch whose position is older than the history window.
fn lost(after: Revision, Compacted { floor }: Compacted) -> ApiError {
    ApiError::expired(format!("too old resource version: {after} ({floor})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selector::{FieldSelector, LabelSelector};

    #[test]
    fn watches_last_as_asked_or_between_the_least_time_and_its_double() {
        let seconds = |asked, least| lifetime(asked, Duration::from_secs(least)).as_secs();
        let most = limits::WATCH_TIME_MAX.as_secs();
        assert_eq!((seconds(Some(7), 10), seconds(Some(i64::MAX), 10)), (7, most));
        assert_eq!((seconds(None, 0), seconds(Some(0), 0)), (most, most));
        assert!((0..100).all(|_| (10..20).contains(&seconds(Some(-1), 10))));
    }

    #[test]
    fn a_selection_by_name_alone_needs_no_comparison() {
        let decided = |namespace: &str, labels: &str, fields: &str| {
            let (labels, fields) = (LabelSelector::parse(labels).unwrap(), FieldSelector::parse(fields).unwrap());
            let listing =
                Listing { selection: Selection { labels, fields, ..Selection::default() }, ..Listing::default() };
            decides(&interest(namespace, &listing), &listing.selection)
        };
        assert!(decided("", "", "") && decided("a", "", ""));
        assert!(decided("a", "", "metadata.name=b") && decided("", "", "metadata.namespace=a,metadata.name=b"));
        assert!(decided("a", "", "metadata.namespace=a,metadata.name=b,metadata.name=b"));
        assert!(!decided("a", "", "metadata.namespace=b") && !decided("", "", "metadata.name=a,metadata.name=b"));
        assert!(!decided("", "", "metadata.name!=a") && !decided("", "", "metadata.name="));
        assert!(!decided("", "app", "metadata.name=a") && !decided("", "", "spec.nodeName=a"));
    }
}
