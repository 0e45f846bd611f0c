//! The members that form a cluster, as `--initial-cluster` states them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::text_options::as_text;

/// The word in the place of a member's name if one host name resolves to the addresses of all members. No member can
/// have this name.
const DNS: &str = "dns";

/// The members that form a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum InitialCluster {
    /// The address at which each member listens for the others, as `HOST:PORT`, by the member's name.
    Members(BTreeMap<String, String>),
    /// A host name that resolves to the addresses of all members, and the port on which they listen.
    Dns(String),
}

/// The reason why a text does not state the members of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InitialClusterError {
    /// It has the wrong form.
    #[error("{0:?} is neither NAME=HOST:PORT nor dns=HOST:PORT")]
    Form(String),
    /// A name that no member can have.
    #[error("{0:?} cannot be the name of a member: it takes letters, digits, dashes, dots and underscores, 63 at most")]
    Name(String),
    /// An address that is not `HOST:PORT`.
    #[error("{address:?} of {name} is not HOST:PORT")]
    Address {
        /// The member.
        name: String,
        /// Its invalid address.
        address: String,
    },
    /// Two members with one name.
    #[error("{0} is named twice")]
    Duplicate(String),
    /// Two members with one address.
    #[error("{0} and {1} have the same address")]
    SameAddress(String, String),
    /// A host name for all members, and others beside it.
    #[error("dns=HOST:PORT stands for all members: nothing may stand beside it")]
    Mixed,
}

impl InitialCluster {
    /// Returns the address at which a member listens for the others. `None` if it is not stated.
    pub fn address_of(&self, name: &str) -> Option<&str> {
        match self {
            Self::Members(members) => members.get(name).map(String::as_str),
            Self::Dns(_) => None,
        }
    }

    /// Returns whether a member with this name may belong to the cluster.
    pub fn may_have(&self, name: &str) -> bool {
        match self {
            Self::Members(members) => members.contains_key(name),
            Self::Dns(_) => true,
        }
    }
}

/// Returns whether a member can have this name.
pub fn is_member_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    (1..=limits::MEMBER_NAME_BYTES).contains(&name.len()) && name.bytes().all(fits) && name != DNS
}

/// Returns the name of this machine if a member can have it, and `flotilla` otherwise.
pub fn default_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_lowercase();
    if is_member_name(&name) { name } else { "flotilla".to_owned() }
}

impl FromStr for InitialCluster {
    type Err = InitialClusterError;

    fn from_str(text: &str) -> Result<Self, InitialClusterError> {
        let mut members = BTreeMap::new();
        for entry in text.split(',').map(str::trim) {
            let form = || InitialClusterError::Form(entry.to_owned());
            let (name, address) = entry.split_once('=').ok_or_else(form)?;
            if !is_member_address(address) {
                let (name, address) = (name.to_owned(), address.to_owned());
                return Err(InitialClusterError::Address { name, address });
            }
            if name != DNS && !is_member_name(name) {
                return Err(InitialClusterError::Name(name.to_owned()));
            }
            if let Some((other, _)) = members.iter().find(|(_, known)| *known == address) {
                let other: &String = other;
                if other != name {
                    return Err(InitialClusterError::SameAddress(other.clone(), name.to_owned()));
                }
            }
            if members.insert(name.to_owned(), address.to_owned()).is_some() {
                return Err(InitialClusterError::Duplicate(name.to_owned()));
            }
        }
        match members.remove(DNS) {
            None => Ok(Self::Members(members)),
            Some(address) if members.is_empty() => Ok(Self::Dns(address)),
            Some(_) => Err(InitialClusterError::Mixed),
        }
    }
}

/// Returns whether a text is `HOST:PORT`, with an IPv6 address in brackets.
pub fn is_member_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let host_fits = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(bare),
    };
    host_fits && port.parse::<u16>().is_ok_and(|port| port > 0)
}

impl fmt::Display for InitialCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns(address) => write!(f, "{DNS}={address}"),
            Self::Members(members) => {
                let mut entries = members.iter();
                let Some((name, address)) = entries.next() else { return Ok(()) };
                write!(f, "{name}={address}")?;
                entries.try_for_each(|(name, address)| write!(f, ",{name}={address}"))
            }
        }
    }
}

as_text!(InitialCluster);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_and_written() {
        let text = "a=10.0.0.1:7000,b=b.example:7001,c=[::1]:7002";
        let cluster: InitialCluster = text.parse().unwrap();
        assert_eq!(cluster.to_string(), text);
        assert_eq!(cluster.address_of("b"), Some("b.example:7001"));
        assert!(cluster.may_have("c") && !cluster.may_have("d"));
        let dns: InitialCluster = "dns=peers.example:7000".parse().unwrap();
        assert_eq!(dns, InitialCluster::Dns("peers.example:7000".into()));
        assert_eq!(dns.address_of("b"), None);
        assert!(dns.may_have("anybody"));
    }

    #[test]
    fn errors_name_the_mistake() {
        for (text, part) in [
            ("", "is neither NAME=HOST:PORT"),
            ("a=h:1,", "is neither NAME=HOST:PORT"),
            ("a=h:1,a=h:2", "a is named twice"),
            ("a=h:1,a=h:1", "a is named twice"),
            ("a=h:1,b=h:1", "a and b have the same address"),
            ("a=h", "\"h\" of a is not HOST:PORT"),
            ("a=h:0", "is not HOST:PORT"),
            ("a=::1:7", "is not HOST:PORT"),
            ("a=https://h:1", "is not HOST:PORT"),
            ("a b=h:1", "cannot be the name"),
            ("=h:1", "cannot be the name"),
            ("dns=h:1,a=h:2", "nothing may stand beside it"),
        ] {
            let error = text.parse::<InitialCluster>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
