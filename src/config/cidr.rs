//! Ranges of IP addresses and of ports, as flags state them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text_options::as_text;

/// A range of IP addresses: a network and the length of its prefix (RFC 4632).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cidr {
    network: IpAddr,
    prefix: u8,
}

/// The reason why a text is not a valid range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CidrError {
    /// Not `ADDRESS/LENGTH`.
    #[error("{0:?} is not of the form ADDRESS/LENGTH")]
    Syntax(String),
    /// Bits after the prefix are set.
    #[error("{0:?} has bits set after its prefix; the network is {1}")]
    HostBits(String, Cidr),
    /// Too many ranges, or two of one IP family.
    #[error("{0:?} must be one range, or one of each IP family")]
    Families(String),
    /// Too few or too many addresses for Services.
    #[error("{0} must have at least 8 addresses, and at most 2^20 of IPv4 or 2^64 of IPv6")]
    Size(Cidr),
    /// Not `FIRST-LAST`.
    #[error("{0:?} is not of the form FIRST-LAST with 1 <= FIRST <= LAST <= 65535")]
    Ports(String),
}

impl Cidr {
    /// Returns the range of this prefix length, in bits, that contains this address. `None` if the prefix is longer
    /// than the address.
    pub fn new(address: IpAddr, prefix: u8) -> Option<Self> {
        let network = match address {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(32u32.checked_sub(prefix.into())?).unwrap_or(0);
                Ipv4Addr::from_bits(ip.to_bits() & mask).into()
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128u32.checked_sub(prefix.into())?).unwrap_or(0);
                Ipv6Addr::from_bits(ip.to_bits() & mask).into()
            }
        };
        Some(Self { network, prefix })
    }

    /// Returns its first address.
    pub const fn network(&self) -> IpAddr {
        self.network
    }

    /// Returns the length of the prefix in bits.
    pub const fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Returns the number of bits after the prefix.
    pub const fn host_bits(&self) -> u8 {
        let bits: u8 = if self.network.is_ipv4() { 32 } else { 128 };
        bits - self.prefix
    }

    /// Returns whether the address lies in the range.
    pub fn contains(&self, address: IpAddr) -> bool {
        Self::new(address, self.prefix).is_some_and(|range| range == *self)
    }

    /// Returns the address at `offset` from the first one. `None` if it is outside the range.
    pub fn nth(&self, offset: u128) -> Option<IpAddr> {
        if self.host_bits() < 128 && offset >> self.host_bits() != 0 {
            return None;
        }
        Some(match self.network {
            IpAddr::V4(ip) => Ipv4Addr::from_bits(ip.to_bits() | u32::try_from(offset).ok()?).into(),
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() | offset).into(),
        })
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        let syntax = || CidrError::Syntax(text.to_owned());
        let (address, prefix) = text.split_once('/').ok_or_else(syntax)?;
        let address: IpAddr = address.parse().map_err(|_| syntax())?;
        let prefix: u8 = prefix.parse().map_err(|_| syntax())?;
        let range = Self::new(address, prefix).ok_or_else(syntax)?;
        if range.network == address { Ok(range) } else { Err(CidrError::HostBits(text.to_owned(), range)) }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

/// Ranges of cluster IPs: one, or one of each IP family. The first is of the cluster's primary family.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServiceRanges {
    primary: Cidr,
    secondary: Option<Cidr>,
}

impl ServiceRanges {
    /// Returns the first range.
    pub const fn primary(&self) -> Cidr {
        self.primary
    }

    /// Returns the range of the other IP family. `None` if there is none.
    pub const fn secondary(&self) -> Option<Cidr> {
        self.secondary
    }

    /// Returns all ranges, the primary one first.
    pub fn iter(&self) -> impl Iterator<Item = Cidr> + use<> {
        std::iter::once(self.primary).chain(self.secondary)
    }

    /// Returns the address of the Service `kubernetes`: the first one that a Service can have.
    pub fn kubernetes_service(&self) -> IpAddr {
        self.primary.nth(1).unwrap_or(self.primary.network)
    }
}

impl Default for ServiceRanges {
    fn default() -> Self {
        Self { primary: Cidr { network: Ipv4Addr::new(10, 96, 0, 0).into(), prefix: 16 }, secondary: None }
    }
}

impl FromStr for ServiceRanges {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        let mut ranges = text.split(',').map(|part| part.trim().parse::<Cidr>());
        let primary = ranges.next().ok_or_else(|| CidrError::Syntax(text.to_owned()))??;
        let secondary = ranges.next().transpose()?;
        let one_family = secondary.is_some_and(|other| other.network.is_ipv4() == primary.network.is_ipv4());
        if one_family || ranges.next().is_some() {
            return Err(CidrError::Families(text.to_owned()));
        }
        let ranges = Self { primary, secondary };
        match ranges.iter().find(|range| !Self::fits(range)) {
            Some(range) => Err(CidrError::Size(range)),
            None => Ok(ranges),
        }
    }
}

impl ServiceRanges {
    /// Returns whether a range has at least 8 addresses, and for IPv4 at most 2^20. IPv6 ranges may be larger, as in
    /// the reference: up to a /64.
    const fn fits(range: &Cidr) -> bool {
        let most = if range.network.is_ipv4() { 20 } else { 64 };
        3 <= range.host_bits() && range.host_bits() <= most
    }
}

impl fmt::Display for ServiceRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.primary.fmt(f)?;
        self.secondary.iter().try_for_each(|range| write!(f, ",{range}"))
    }
}

/// A range of ports, first and last included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PortRange {
    /// The first port.
    pub first: u16,
    /// The last port.
    pub last: u16,
}

impl PortRange {
    /// The default range of node ports in the reference.
    pub const NODE_PORTS: Self = Self { first: 30_000, last: 32_767 };
}

impl FromStr for PortRange {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        let bounds = text.split_once('-').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        match bounds {
            Some((first, last)) if 0 < first && first <= last => Ok(Self { first, last }),
            _ => Err(CidrError::Ports(text.to_owned())),
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

as_text!(ServiceRanges, PortRange);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_the_addresses_after_its_network() {
        let range: Cidr = "10.96.0.0/29".parse().unwrap();
        assert_eq!(range.nth(7), Some("10.96.0.7".parse().unwrap()));
        assert_eq!(range.nth(8), None);
        assert!(range.contains("10.96.0.7".parse().unwrap()));
        assert!(!range.contains("10.96.0.8".parse().unwrap()));
        assert!(!range.contains("::1".parse().unwrap()));
        assert_eq!("0.0.0.0/0".parse::<Cidr>().unwrap().nth(u32::MAX.into()), Some("255.255.255.255".parse().unwrap()));
        assert_eq!("::/0".parse::<Cidr>().unwrap().nth(u128::MAX).unwrap(), IpAddr::from([0xff; 16]));
    }

    #[test]
    fn wrong_ranges_are_refused() {
        for text in
            ["", "10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "x/8", "10.0.0.0/8,10.96.0.0/16", "10.0.0.0/30"]
        {
            assert!(text.parse::<ServiceRanges>().is_err(), "{text}");
        }
        assert!(matches!("10.96.0.1/16".parse::<Cidr>(), Err(CidrError::HostBits(..))));
        for text in ["", "1", "0-5", "5-4", "1-65536"] {
            assert!(text.parse::<PortRange>().is_err(), "{text}");
        }
    }

    #[test]
    fn service_ranges_may_be_of_two_families() {
        let text = "fd00:10:96::/108,10.96.0.0/16";
        let ranges: ServiceRanges = text.parse().unwrap();
        assert_eq!(ranges.to_string(), text);
        assert_eq!(ranges.kubernetes_service(), "fd00:10:96::1".parse::<IpAddr>().unwrap());
    }
}
