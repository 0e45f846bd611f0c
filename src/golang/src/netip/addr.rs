//! IP addresses.

use std::cmp::Ordering;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use super::parse::{parse_v4, parse_v6};
use crate::strconv::quote;

/// The reason why a text is not an address: the text, the fault, and the rest of the text, which begins at the fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ParseAddr({}): {fault}{}", quote(text), at(rest))]
pub struct AddrError {
    text: String,
    fault: AddrFault,
    rest: String,
}

fn at(rest: &str) -> String {
    if rest.is_empty() { String::new() } else { format!(" (at {})", quote(rest)) }
}

/// An error in an address, in Go's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddrFault {
    /// Neither dots nor colons.
    #[error("unable to parse IP")]
    Form,
    /// A zone alone.
    #[error("missing IPv6 address")]
    ZoneAlone,
    /// A `%` without a zone.
    #[error("zone must be a non-empty string")]
    EmptyZone,
    /// A zero before other digits.
    #[error("IPv4 field has octet with leading zero")]
    LeadingZero,
    /// A number above 255.
    #[error("IPv4 field has value >255")]
    Octet,
    /// No number before or after a dot.
    #[error("IPv4 field must have at least one digit")]
    EmptyOctet,
    /// More than four numbers.
    #[error("IPv4 address too long")]
    Long4,
    /// Fewer than four numbers.
    #[error("IPv4 address too short")]
    Short4,
    /// A character that is neither a digit nor a dot.
    #[error("unexpected character")]
    Sign4,
    /// A group of more than four digits.
    #[error("each group must have 4 or less digits")]
    LongGroup,
    /// No digits between two colons.
    #[error("each colon-separated field must have at least one digit")]
    EmptyGroup,
    /// An IPv4 address elsewhere than at the end.
    #[error("embedded IPv4 address must replace the final 2 fields of the address")]
    Embedded,
    /// An IPv4 address after too many groups.
    #[error("too many hex fields to fit an embedded IPv4 at the end of the address")]
    EmbeddedLong,
    /// A character that is neither a digit nor a colon.
    #[error("unexpected character, want colon")]
    Colon,
    /// A colon at the end.
    #[error("colon must be followed by more characters")]
    TrailingColon,
    /// A second `::`.
    #[error("multiple :: in address")]
    Ellipses,
    /// More than eight groups.
    #[error("trailing garbage after address")]
    Trailing,
    /// Fewer than eight groups.
    #[error("address string too short")]
    Short6,
    /// A `::` between eight groups.
    #[error("the :: must expand to at least one field of zeros")]
    EmptyEllipsis,
}

/// An IP address; an IPv6 address may have a zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addr {
    pub(super) ip: IpAddr,
    pub(super) zone: String,
}

impl Addr {
    /// Parses an address.
    ///
    /// # Errors
    /// When Go would refuse it, in Go's words.
    pub fn parse(text: &str) -> Result<Self, AddrError> {
        let fail = |(fault, rest): (AddrFault, &str)| AddrError { text: text.into(), fault, rest: rest.into() };
        match text.bytes().find(|byte| matches!(byte, b'.' | b':' | b'%')) {
            Some(b'.') => Ok(Ipv4Addr::from(parse_v4(text).map_err(fail)?).into()),
            Some(b':') => parse_v6(text).map_err(fail),
            Some(_) => Err(fail((AddrFault::ZoneAlone, ""))),
            None => Err(fail((AddrFault::Form, ""))),
        }
    }

    /// Returns the address without its zone.
    pub fn ip(&self) -> IpAddr {
        self.ip
    }

    /// Returns the zone; empty for none.
    pub fn zone(&self) -> &str {
        &self.zone
    }

    /// Returns whether this is an IPv4 address; one that is mapped to IPv6 is not.
    pub fn is_v4(&self) -> bool {
        self.ip.is_ipv4()
    }

    /// Returns whether this is an IPv4 address that is mapped to IPv6, such as `::ffff:10.0.0.1`.
    pub fn is_v4_in_v6(&self) -> bool {
        matches!(self.ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
    }

    /// Returns how many bits the address has.
    pub fn bits(&self) -> u8 {
        if self.is_v4() { 32 } else { 128 }
    }

    fn plain(&self) -> IpAddr {
        self.ip.to_canonical()
    }

    /// Returns whether this is the unspecified address, `0.0.0.0` or `::`.
    pub fn is_unspecified(&self) -> bool {
        self.ip.is_unspecified() && self.zone.is_empty()
    }

    /// Returns whether this is an address of the host itself.
    pub fn is_loopback(&self) -> bool {
        self.plain().is_loopback()
    }

    /// Returns whether this is an address of several hosts on one link.
    pub fn is_link_local_multicast(&self) -> bool {
        match self.plain() {
            IpAddr::V4(ip) => ip.octets().starts_with(&[224, 0, 0]),
            IpAddr::V6(ip) => ip.segments()[0] & 0xff0f == 0xff02,
        }
    }

    /// Returns whether this is an address of one host on one link.
    pub fn is_link_local_unicast(&self) -> bool {
        match self.plain() {
            IpAddr::V4(ip) => ip.is_link_local(),
            IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
        }
    }

    /// Returns whether this is an address of one host beyond its link.
    pub fn is_global_unicast(&self) -> bool {
        let is_broadcast = self.plain() == IpAddr::V4(Ipv4Addr::BROADCAST);
        let is_unspecified = self.plain() == IpAddr::V4(Ipv4Addr::UNSPECIFIED) || self.is_unspecified();
        let is_multicast = self.plain().is_multicast();
        !is_broadcast && !is_unspecified && !self.is_loopback() && !is_multicast && !self.is_link_local_unicast()
    }

    /// Returns the bits as the upper bits of a number.
    pub(super) fn number(&self) -> u128 {
        match self.ip {
            IpAddr::V4(ip) => u128::from(u32::from(ip)) << 96,
            IpAddr::V6(ip) => ip.into(),
        }
    }
}

impl From<Ipv4Addr> for Addr {
    fn from(ip: Ipv4Addr) -> Self {
        Self { ip: ip.into(), zone: String::new() }
    }
}

impl Ord for Addr {
    /// Orders IPv4 before IPv6, then by the bits, then by the zone.
    fn cmp(&self, other: &Self) -> Ordering {
        (self.bits(), self.number(), &self.zone).cmp(&(other.bits(), other.number(), &other.zone))
    }
}

impl PartialOrd for Addr {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The standard library writes groups of zeros as Go does.
        write!(f, "{}", self.ip)?;
        if self.zone.is_empty() { Ok(()) } else { write!(f, "%{}", self.zone) }
    }
}
