//! The served group versions and their priorities.

use std::sync::Arc;

use flotilla_proto::catalogue;
use flotilla_proto::schema::{Ref, Resource, Text};
use flotilla_proto::value::Value;

use super::priorities;
use crate::embedded::TextError;
use crate::enablement::Enablement;

/// Rank of the groups of custom resources (`groupPriorityMinimum` of their API services).
pub const CUSTOM_GROUP_PRIORITY: i64 = 1000;
/// Rank of the versions of custom resources (`versionPriority`).
pub const CUSTOM_VERSION_PRIORITY: i64 = 100;
/// Rank of `apiregistration.k8s.io`, which has no API service and precedes every other named group.
const REGISTRATION_PRIORITY: (i64, i64) = (20_000, 10);

/// A group version that this server serves, or lists for another server.
#[derive(Debug, Clone)]
pub struct Served {
    /// API group; empty for the core group.
    pub group: Text,
    /// API version.
    pub version: Text,
    /// Rank of the group, highest first; a group ranks as the highest of its versions.
    pub group_priority: i64,
    /// Rank of the version in its group, highest first; equal ones rank by [`crate::api_version::compare`].
    pub version_priority: i64,
    /// Whether its resources come from a CustomResourceDefinition.
    pub custom: bool,
    /// Whether the server behind it could not be asked for its resources recently.
    pub stale: bool,
    /// The resources that another server reports, in the form of aggregated discovery. `None` for this server's own.
    pub reported: Option<Arc<Vec<Value>>>,
    /// Resources in the order in which they are listed.
    pub resources: Vec<Ref<Resource>>,
}

/// Returns all enabled built-in group versions.
///
/// # Errors
/// If the embedded table of priorities does not parse, which tests exclude.
pub fn built_in(enablement: &Enablement) -> Result<Vec<Served>, TextError> {
    let ranks = priorities()?;
    let mut all = Vec::new();
    for group in catalogue::groups() {
        for version in group.versions.iter().filter(|version| enablement.serves_any(group.name, version.name)) {
            let on = |of: &&Resource| enablement.serves(group.name, version.name, &of.name);
            let rank = ranks.iter().find(|rank| rank.group == group.name && rank.version == version.name);
            let (group_priority, version_priority) =
                rank.map_or(REGISTRATION_PRIORITY, |rank| (rank.group_priority, rank.version_priority));
            all.push(Served {
                group: group.name.into(),
                version: version.name.into(),
                group_priority,
                version_priority,
                custom: false,
                stale: false,
                reported: None,
                resources: version.resources.iter().filter(on).map(Ref::Static).collect(),
            });
        }
    }
    Ok(all)
}
