//! How the group versions that this server serves itself rank in discovery, and in their API services.

use crate::embedded::{TextError, lines};

/// How a group version ranks among the others; higher comes first.
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

/// The built-in group versions with their ranks, in the order of discovery. `apiregistration.k8s.io`, which comes
/// before all of them, has no API service and is not listed.
///
/// # Errors
/// When the embedded table does not parse, which the tests of this module rule out.
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
