//! Merges the changes of all shards of a table in revision order.

use std::sync::Arc;

use super::division::PlacedShard;
use crate::change::ChangeRange;
use crate::{Change, Compacted, Revision};

/// Appends the changes of a range, at least one if there is any. Returns the revision up to which these are all
/// changes: the end of the range, unless there may be more.
pub(super) fn changes(
    shards: &[PlacedShard],
    of: ChangeRange,
    out: &mut Vec<Arc<Change>>,
) -> Result<Revision, Compacted> {
    let ChangeRange { through, max, .. } = of;
    let from = out.len();
    if let [only] = shards {
        only.shard.changes(of, out)?;
        let is_all = out.len() - from < max;
        return Ok(out.last().filter(|_| !is_all).map_or(through, |last| last.revision()));
    }
    // A shard that returned only part of its changes bounds which changes of the others may be shown.
    let (mut runs, mut run, mut complete) = (Vec::new(), Vec::new(), through);
    let each = max.div_ceil(shards.len());
    for placed in shards {
        placed.shard.changes(ChangeRange { max: each, ..of }, &mut run)?;
        if run.len() == each {
            complete = complete.min(run.last().map_or(through, |last| last.revision()));
        }
        runs.extend(run.drain(..).map(|change| (change.revision(), change)));
    }
    runs.retain(|(revision, _)| *revision <= complete);
    runs.sort_by_key(|(revision, _)| *revision); // the stable sort merges runs that are sorted already
    if runs.len() > max {
        runs.truncate(max);
        complete = runs.last().map_or(complete, |(revision, _)| *revision);
    }
    out.extend(runs.into_iter().map(|(_, change)| change));
    Ok(complete)
}
