//! The number of shards of tables, as in `pods=8,apps/deployments=2`, or `large`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use flotilla_cluster::limits::SHARDS_MAX;
use flotilla_proto::catalogue;
use serde::{Deserialize, Serialize};

use crate::catalogued::{CONSULTED, stored_resource};
use crate::text_options::as_text;

/// Tables that cannot have several shards: a write to them allocates addresses and ports, and must see the latest state
/// of all objects for that.
const WHOLE: [&str; 1] = ["services"];

/// The meaning of `large`: the resources that large clusters write or read most.
const LARGE: &str = "pods=8,events=8,nodes=8,coordination.k8s.io/leases=8,discovery.k8s.io/endpointslices=8";

/// The stated numbers of shards, by table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shards(BTreeMap<String, u16>);

/// The reason why a text does not state numbers of shards.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShardsError {
    /// It is not a list of `resource=number`.
    #[error("{0:?} is not of the form resource=shards, as in pods=8 or apps/deployments=2")]
    Syntax(String),
    /// The name cannot be that of a resource.
    #[error("{0:?} is not a resource: it is named as in pods, apps/deployments or example.com/widgets")]
    Resource(String),
    /// The name has the form of a built-in resource's name, but no built-in resource has it.
    #[error("no resource {0:?} is stored: those of custom resources are named as in example.com/widgets")]
    Unknown(String),
    /// The number is out of range.
    #[error("{0} cannot have {1} shards: from 1 to {SHARDS_MAX} are possible")]
    Count(String, String),
    /// A resource is named twice.
    #[error("{0} is named twice")]
    Twice(String),
    /// The resource cannot be moved, since admission of other resources consults it.
    #[error("{0} stays in the group default, in one shard: the server consults it to decide writes of other resources")]
    Consulted(String),
    /// The resource must have one shard.
    #[error("{0} cannot have several shards: an allocation must see the ports of all of them")]
    Whole(String),
}

impl Shards {
    /// Returns the resources with their numbers of shards. Names are those of tables: `pods`, `apps/deployments`.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u16)> {
        self.0.iter().map(|(resource, shards)| (resource.as_str(), *shards))
    }

    /// Returns the largest number of shards. 0 if none is stated.
    pub fn largest(&self) -> u16 {
        self.0.values().copied().max().unwrap_or(0)
    }
}

/// Returns the name of the table for `group/resource`, `resource.group`, or, if it is built in, `resource`.
fn resource(text: &str) -> Result<String, ShardsError> {
    if !is_resource(text) {
        return Err(ShardsError::Resource(text.to_owned()));
    }
    let (group, name) = match (text.split_once('/'), text.split_once('.')) {
        (Some((group, name)), _) | (None, Some((name, group))) => (Some(group), name),
        (None, None) => (None, text),
    };
    match (stored_resource(group, name), group) {
        (Some(("", name)), _) => Ok(name.to_owned()),
        (Some((group, name)), _) => Ok(format!("{group}/{name}")),
        (None, Some(group)) if catalogue::group(group).is_none() => Ok(format!("{group}/{name}")),
        (None, _) => Err(ShardsError::Unknown(text.to_owned())),
    }
}

/// Returns whether a text has the form `resource`, `resource.group`, or `group/resource` with a DNS name as the group.
fn is_resource(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let label =
        |label: &str| !label.is_empty() && label.bytes().all(plain) && !label.starts_with('-') && !label.ends_with('-');
    match text.split_once('/') {
        None => text.split('.').all(label),
        Some((group, resource)) => group.split('.').all(label) && label(resource),
    }
}

impl FromStr for Shards {
    type Err = ShardsError;

    fn from_str(text: &str) -> Result<Self, ShardsError> {
        let mut shards = BTreeMap::new();
        let is_large = |part: &str| part == "large";
        let parts = || text.split(',').map(str::trim).filter(|part| !part.is_empty());
        for part in parts().filter(|part| !is_large(part)) {
            let (named, count) = part.split_once('=').ok_or_else(|| ShardsError::Syntax(part.to_owned()))?;
            let resource = resource(named)?;
            let number = count.parse().ok().filter(|count| (1..=SHARDS_MAX).contains(count));
            let number = number.ok_or_else(|| ShardsError::Count(resource.clone(), count.to_owned()))?;
            if CONSULTED.contains(&resource.as_str()) {
                return Err(ShardsError::Consulted(resource));
            }
            if number > 1 && WHOLE.contains(&resource.as_str()) {
                return Err(ShardsError::Whole(resource));
            }
            if shards.insert(resource.clone(), number).is_some() {
                return Err(ShardsError::Twice(resource));
            }
        }
        if parts().any(is_large) {
            for (resource, count) in LARGE.parse::<Self>()?.0 {
                shards.entry(resource).or_insert(count);
            }
        }
        Ok(Self(shards))
    }
}

impl fmt::Display for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (resource, shards)) in self.iter().enumerate() {
            write!(f, "{}{resource}={shards}", if number == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

as_text!(Shards);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_read_back_as_written() {
        let shards: Shards = "pods=8, coordination.k8s.io/leases=4,example.com/widgets=1".parse().unwrap();
        assert_eq!(shards.to_string(), "coordination.k8s.io/leases=4,example.com/widgets=1,pods=8");
        assert_eq!(shards.to_string().parse(), Ok(shards.clone()));
        assert_eq!((shards.largest(), shards.iter().count()), (8, 3));
        assert_eq!("".parse::<Shards>(), Ok(Shards::default()));
        let large: Shards = "large,pods=16".parse().unwrap();
        assert_eq!((large.largest(), large.iter().count()), (16, 5));
        assert!(large.to_string().contains("events=8,nodes=8,pods=16"), "{large}");
    }

    #[test]
    fn resources_have_several_names() {
        let shards: Shards = "leases=2,deployments.apps=3,widgets.example.com=4,events=5".parse().unwrap();
        assert_eq!(
            shards.to_string(),
            "apps/deployments=3,coordination.k8s.io/leases=2,events=5,example.com/widgets=4"
        );
    }

    #[test]
    fn malformed_numbers_of_shards_are_refused() {
        let refused = |text: &str| text.parse::<Shards>().unwrap_err();
        assert!(matches!(refused("pods"), ShardsError::Syntax(_)));
        assert!(matches!(refused("Pods=2"), ShardsError::Resource(_)));
        assert!(matches!(refused("/pods=2"), ShardsError::Resource(_)));
        assert!(matches!(refused("apps/v1/deployments=2"), ShardsError::Resource(_)));
        assert!(matches!(refused("widgets=2"), ShardsError::Unknown(_)));
        assert!(matches!(refused("apps/leases=2"), ShardsError::Unknown(_)));
        assert!(matches!(refused("leases=2,leases.coordination.k8s.io=2"), ShardsError::Twice(_)));
        assert!(matches!(refused("pods=0"), ShardsError::Count(..)));
        assert!(matches!(refused("pods=65"), ShardsError::Count(..)));
        assert!(matches!(refused("pods=many"), ShardsError::Count(..)));
        assert!(matches!(refused("pods=2,pods=2"), ShardsError::Twice(_)));
        assert!(matches!(refused("services=2"), ShardsError::Whole(_)));
        assert!(matches!(refused("namespaces=2"), ShardsError::Consulted(_)));
        assert!(matches!(refused("roles.rbac.authorization.k8s.io=1"), ShardsError::Consulted(_)));
        assert!("services=1".parse::<Shards>().is_ok());
    }
}
