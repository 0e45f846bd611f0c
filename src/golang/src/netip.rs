//! IP addresses and prefixes, parsed and formatted as Go's `net/netip` does.

use std::cmp::Ordering;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::strconv::quote;

/// Why a text is not an address: the text, the fault, and the rest from which on it could not be parsed.
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
    /// Neither points nor colons.
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
    /// No number between two points.
    #[error("IPv4 field must have at least one digit")]
    EmptyOctet,
    /// More than four numbers.
    #[error("IPv4 address too long")]
    Long4,
    /// Less than four numbers.
    #[error("IPv4 address too short")]
    Short4,
    /// A character that is not a digit.
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
    /// An IPv4 address behind too many groups.
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
    /// Less than eight groups.
    #[error("address string too short")]
    Short6,
    /// A `::` between eight groups.
    #[error("the :: must expand to at least one field of zeros")]
    EmptyEllipsis,
}

/// An IP address; an IPv6 address may have a zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addr {
    ip: IpAddr,
    zone: String,
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

    /// Returns whether this is an IPv4 address; one within IPv6 is not.
    pub fn is_v4(&self) -> bool {
        self.ip.is_ipv4()
    }

    /// Returns whether this is an IPv4 address written within IPv6.
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

    /// Returns whether no host has this address.
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
    fn number(&self) -> u128 {
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

/// A fault, and the rest of the text from which on it could not be parsed.
type Fail<'t> = (AddrFault, &'t str);

fn parse_v4(text: &str) -> Result<[u8; 4], Fail<'_>> {
    let (mut octets, mut index, mut value, mut digits) = ([0; 4], 0, 0u32, 0);
    let bytes = text.as_bytes();
    for (place, &byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return Err((AddrFault::LeadingZero, ""));
                }
                (value, digits) = (value * 10 + u32::from(byte - b'0'), digits + 1);
                if value > 255 {
                    return Err((AddrFault::Octet, ""));
                }
            }
            b'.' => {
                if digits == 0 || place == bytes.len() - 1 {
                    return Err((AddrFault::EmptyOctet, &text[place..]));
                }
                if index == 3 {
                    return Err((AddrFault::Long4, ""));
                }
                octets[index] = value as u8;
                (index, value, digits) = (index + 1, 0, 0);
            }
            _ => return Err((AddrFault::Sign4, &text[place..])),
        }
    }
    if index < 3 {
        return Err((AddrFault::Short4, ""));
    }
    octets[3] = value as u8;
    Ok(octets)
}

fn parse_v6(text: &str) -> Result<Addr, Fail<'_>> {
    let (groups, zone) = match text.split_once('%') {
        Some((_, "")) => return Err((AddrFault::EmptyZone, "")),
        Some(split) => split,
        None => (text, ""),
    };
    let ip = parse_groups(groups)?;
    Ok(Addr { ip: Ipv6Addr::from(ip).into(), zone: zone.to_owned() })
}

fn parse_groups(text: &str) -> Result<[u8; 16], Fail<'_>> {
    let (mut bytes, mut ellipsis, mut rest) = (Vec::with_capacity(16), None, text);
    if let Some(after) = rest.strip_prefix("::") {
        (ellipsis, rest) = (Some(0), after);
        if rest.is_empty() {
            return Ok([0; 16]);
        }
    }
    while bytes.len() < 16 {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits > 4 {
            return Err((AddrFault::LongGroup, rest));
        }
        if digits == 0 {
            return Err((AddrFault::EmptyGroup, rest));
        }
        if rest[digits..].starts_with('.') {
            if ellipsis.is_none() && bytes.len() != 12 {
                return Err((AddrFault::Embedded, rest));
            }
            if bytes.len() > 12 {
                return Err((AddrFault::EmbeddedLong, rest));
            }
            bytes.extend(parse_v4(rest)?);
            rest = "";
            break;
        }
        let group = u16::from_str_radix(&rest[..digits], 16).unwrap_or_default();
        bytes.extend(group.to_be_bytes());
        rest = &rest[digits..];
        if rest.is_empty() {
            break;
        }
        let after = rest.strip_prefix(':').ok_or((AddrFault::Colon, rest))?;
        if after.is_empty() {
            return Err((AddrFault::TrailingColon, rest));
        }
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if ellipsis.is_some() {
                return Err((AddrFault::Ellipses, rest));
            }
            (ellipsis, rest) = (Some(bytes.len()), after);
            if rest.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        return Err((AddrFault::Trailing, rest));
    }
    expand(&bytes, ellipsis)
}

/// Inserts zeros at the position of `::`.
fn expand<'t>(bytes: &[u8], ellipsis: Option<usize>) -> Result<[u8; 16], Fail<'t>> {
    let mut all = [0; 16];
    match ellipsis {
        None if bytes.len() < 16 => return Err((AddrFault::Short6, "")),
        Some(_) if bytes.len() == 16 => return Err((AddrFault::EmptyEllipsis, "")),
        _ => {
            let (head, tail) = bytes.split_at(ellipsis.unwrap_or(16));
            all[..head.len()].copy_from_slice(head);
            all[16 - tail.len()..].copy_from_slice(tail);
        }
    }
    Ok(all)
}

/// Why a text is not a prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("netip.ParsePrefix({}): {fault}", quote(text))]
pub struct PrefixError {
    text: String,
    fault: PrefixFault,
}

/// An error in a range, in Go's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrefixFault {
    /// No length.
    #[error("no '/'")]
    Slash,
    /// The text before the length is not an address.
    #[error(transparent)]
    Addr(AddrError),
    /// An address with a zone.
    #[error("IPv6 zones cannot be present in a prefix")]
    Zone,
    /// A length that is not a number.
    #[error("bad bits after slash: {}", quote(.0))]
    Bits(String),
    /// A length of more bits than the address has.
    #[error("prefix length out of range")]
    Length,
}

/// A prefix: the range of addresses that begin with the same bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    addr: Addr,
    length: u8,
}

impl Prefix {
    /// Reads a range.
    ///
    /// # Errors
    /// When Go would refuse it, in Go's words.
    pub fn parse(text: &str) -> Result<Self, PrefixError> {
        let fail = |fault| PrefixError { text: text.to_owned(), fault };
        let (addr, bits) = text.rsplit_once('/').ok_or_else(|| fail(PrefixFault::Slash))?;
        let addr = Addr::parse(addr).map_err(|error| fail(PrefixFault::Addr(error)))?;
        if !addr.zone.is_empty() {
            return Err(fail(PrefixFault::Zone));
        }
        let bad = || fail(PrefixFault::Bits(bits.to_owned()));
        let is_number = bits.bytes().all(|byte| byte.is_ascii_digit()) && !(bits.len() > 1 && bits.starts_with('0'));
        let length: i64 = if is_number { bits.parse().map_err(|_| bad())? } else { return Err(bad()) };
        match u8::try_from(length) {
            Ok(length) if length <= addr.bits() => Ok(Self { addr, length }),
            _ => Err(fail(PrefixFault::Length)),
        }
    }

    /// Returns the range of addresses that share the first `length` bits with `addr`.
    pub fn new(addr: Addr, length: u8) -> Self {
        let length = length.min(addr.bits());
        Self { addr, length }
    }

    /// Returns the address as it was written; its bits after the prefix may be set.
    pub fn addr(&self) -> &Addr {
        &self.addr
    }

    /// Returns how many bits all addresses share.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// Returns the same range with its first address.
    pub fn masked(&self) -> Self {
        let number = self.addr.number() & mask(self.length);
        let ip = match self.addr.ip {
            IpAddr::V4(_) => IpAddr::V4(((number >> 96) as u32).into()),
            IpAddr::V6(_) => IpAddr::V6(number.into()),
        };
        Self { addr: Addr { ip, zone: String::new() }, length: self.length }
    }

    /// Returns whether an address is in the range.
    pub fn contains(&self, addr: &Addr) -> bool {
        let shares = (addr.number() ^ self.addr.number()) & mask(self.length) == 0;
        addr.zone.is_empty() && addr.bits() == self.addr.bits() && shares
    }
}

fn mask(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr, self.length)
    }
}

#[cfg(test)]
mod tests;
