//! Prefixes: ranges of addresses that begin with the same bits.

use std::fmt;
use std::net::IpAddr;

use super::addr::{Addr, AddrError};
use crate::strconv::quote;

/// The reason why a text is not a prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("netip.ParsePrefix({}): {fault}", quote(text))]
pub struct PrefixError {
    text: String,
    fault: PrefixFault,
}

/// An error in a prefix, in Go's words.
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
    /// Parses a prefix.
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
