//! The order of this server's own group versions in discovery, and the priorities in their API services.

use crate::embedded::{TextError, lines};

/// The priorities of a group version; higher ones come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupVersionPriority<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Rank of the group (`groupPriorityMinimum`).
    pub group_priority: i64,
    /// Rank of the version within its group (`versionPriority`).
    pub version_priority: i64,
}

/// Returns the built-in group versions with their priorities, in the order of discovery. `apiregistration.k8s.io`,
/// which comes before all of them, has no API service and is not listed.
///
/// # Errors
/// If the embedded table does not parse, which the tests of this module exclude.
pub fn priorities() -> Result<Vec<GroupVersionPriority<'static>>, TextError> {
    lines("api services", include_str!("priorities.txt"))
        .map(|line| {
            let group = line.word(0)?;
            Ok(GroupVersionPriority {
                group: if group == "core" { "" } else { group },
                version: line.word(1)?,
                group_priority: line.number(2)?,
                version_priority: line.number(3)?,
            })
        })
        .collect()
}
