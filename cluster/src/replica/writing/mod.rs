//! Makes a write, whichever replica leads its group.
//!
//! [`retried_write`] makes it exactly once, although it may be sent twice.

pub(crate) mod retried_write;

use self::retried_write::RetriedWrite;
use crate::group::Tables;
use crate::limits::OBJECT_BYTES_MAX;
use crate::replica::groups::Groups;
use crate::shard_map::MAP_TABLE;
use crate::{Mutation, Outcome, Tenure, Write, WriteError};

/// Makes one conditional write, and waits until it is durable and visible here.
pub(crate) async fn make(
    tables: &Tables,
    groups: &Groups,
    write: Write,
    tenure: Option<Tenure>,
) -> Result<Outcome, WriteError> {
    let bytes = check(&write)? + write.key.as_str().len();
    // Without a shard map the table's groups are not known, and a write to another group would never be visible.
    if write.table.as_str() != MAP_TABLE && !tables.is_founded() {
        return Err(WriteError::Unavailable);
    }
    let table = tables.table(&write.table);
    let write_shard = table.write_shard(write.key.as_str());
    let group = groups.get(write_shard.clock.name()).ok_or(WriteError::Unavailable)?;
    // The write is kept for further attempts if these can become necessary.
    if group.leader_client.has_others() || table.after(write_shard.epoch).is_some() {
        return RetriedWrite::new(groups, table, write).make(bytes, tenure).await;
    }
    let outcome = group.leader_client.propose(write, None, (write_shard.epoch, write_shard.shard), bytes, None).await;
    outcome.map_err(|error| if error == WriteError::Moved { WriteError::Unavailable } else { error })
}

/// Checks that every replica can store the write. Returns the size of the object.
fn check(write: &Write) -> Result<usize, WriteError> {
    let short = |text: &str| text.len() <= usize::from(u16::MAX);
    if !short(write.key.as_str()) || !short(write.table.as_str()) {
        return Err(WriteError::Malformed);
    }
    let Mutation::Put(draft) = &write.mutation else { return Ok(0) };
    let bytes = draft.bytes.len();
    if bytes > OBJECT_BYTES_MAX {
        return Err(WriteError::TooLarge { bytes, bytes_max: OBJECT_BYTES_MAX });
    }
    let fits = |terms: &[crate::Term]| {
        terms.len() <= usize::from(u16::MAX) && terms.iter().all(|(name, value)| short(name) && short(value))
    };
    match draft.layout.fits(bytes) && fits(draft.terms.labels()) && fits(draft.terms.fields()) {
        true => Ok(bytes),
        false => Err(WriteError::Malformed),
    }
}
