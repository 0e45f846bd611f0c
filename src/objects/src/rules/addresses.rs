//! Parses and checks IP addresses and CIDR blocks.
//!
//! Old fields once accepted texts that strict parsers refuse (leading zeros, IPv4 inside IPv6). Callers pass the stored
//! values as `old`, so that such values stay valid.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use flotilla_proto::value::Value;

use crate::field::{Errors, Path, quote};

const NO_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const NO_BLOCK: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
const NO_INTERFACE: &str = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";

/// Parses an address. Decimal parts may have leading zeros. Returns `None` if the text is no address.
pub fn parse_sloppy(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address);
    }
    if !text.contains(':') {
        return parse_v4_sloppy(text).map(IpAddr::V4);
    }
    let (head, tail) = text.rsplit_once(':')?;
    let [a, b, c, d] = parse_v4_sloppy(tail)?.octets();
    let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    format!("{head}:{high:x}:{low:x}").parse::<Ipv6Addr>().ok().map(IpAddr::V6)
}

fn parse_v4_sloppy(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        *octet = if digits { part.parse().ok()? } else { return None };
    }
    parts.next().is_none().then_some(octets.into())
}

/// Formats an address canonically: IPv4 inside IPv6 as plain IPv4, all else by RFC 5952.
pub fn canonical(address: IpAddr) -> String {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or_else(|| v6.to_string(), |v4| v4.to_string()),
        IpAddr::V4(v4) => v4.to_string(),
    }
}

/// Returns whether an address counts as IPv4: it is one, or an IPv6 address that contains one.
pub fn is_v4(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => true,
        IpAddr::V6(v6) => v6.to_ipv4_mapped().is_some(),
    }
}

/// Returns the family of an address in a text, as `ipFamilies` names it. Returns `None` if the text is no address.
pub fn family(text: &str) -> Option<&'static str> {
    parse_sloppy(text).map(|address| if is_v4(address) { "IPv4" } else { "IPv6" })
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

/// Checks an address of an old field. Texts in `old` are valid.
pub fn check_legacy(path: &Path<'_>, text: &str, old: &[Value], errors: &mut Errors) {
    if !old.iter().any(|value| value.as_str() == Some(text)) {
        check_strict(path, text, errors);
    }
}

fn check_strict(path: &Path<'_>, text: &str, errors: &mut Errors) -> Option<IpAddr> {
    let Some(address) = parse_sloppy(text) else {
        errors.invalid_str(path, text, NO_ADDRESS);
        return None;
    };
    if text.parse::<IpAddr>().is_err() {
        errors.invalid_str(path, text, "must not have leading 0s");
        return None;
    }
    if is_mapped(address) {
        errors.invalid_str(path, text, "must not be an IPv4-mapped IPv6 address");
        return None;
    }
    Some(address)
}

/// Checks an address of a new field, which must be written canonically.
pub fn check_address(path: &Path<'_>, text: &str, errors: &mut Errors) {
    let Some(address) = check_strict(path, text, errors) else { return };
    let canonical = canonical(address);
    if canonical != text {
        errors.invalid_str(path, text, format!("must be in canonical form ({})", quote(&canonical)));
    }
}

/// A block of addresses with the same leading bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// An address in the block, as it was written.
    pub address: IpAddr,
    /// Leading bits that all addresses of the block share.
    pub bits: u8,
}

impl Block {
    /// Parses `address/bits`. Numbers may have leading zeros. Returns `None` if the text is no block.
    pub fn parse_sloppy(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let address = parse_sloppy(address)?;
        let digits = !bits.is_empty() && bits.bytes().all(|b| b.is_ascii_digit());
        let bits: u32 = if digits {
            bits.trim_start_matches('0')
                .parse()
                .or_else(|e| if bits.bytes().all(|b| b == b'0') { Ok(0) } else { Err(e) })
                .ok()?
        } else {
            return None;
        };
        let max = if address.is_ipv4() { 32 } else { 128 };
        u8::try_from(bits).ok().filter(|bits| *bits <= max).map(|bits| Self { address, bits })
    }

    /// Returns the first address of the block.
    pub fn first(self) -> IpAddr {
        match self.address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V4((u32::from(v4) & mask).into())
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V6((u128::from(v6) & mask).into())
            }
        }
    }

    /// Returns the last address of the block.
    pub fn last(self) -> IpAddr {
        match self.first() {
            IpAddr::V4(v4) => IpAddr::V4((u32::from(v4) | u32::MAX.checked_shr(self.bits.into()).unwrap_or(0)).into()),
            IpAddr::V6(v6) => {
                IpAddr::V6((u128::from(v6) | u128::MAX.checked_shr(self.bits.into()).unwrap_or(0)).into())
            }
        }
    }

    /// Returns whether an address lies in the block.
    pub fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && Self { address, bits: self.bits }.first() == self.first()
    }

    /// Returns whether two blocks share an address.
    pub fn overlaps(self, other: Self) -> bool {
        self.contains(other.first()) || other.contains(self.first())
    }

    /// Formats the block canonically.
    pub fn canonical(self) -> String {
        format!("{}/{}", canonical(self.first()), self.bits)
    }
}

/// Checks a block of an old field. Texts in `old` are valid.
pub fn check_block_legacy(path: &Path<'_>, text: &str, old: &[Value], errors: &mut Errors) {
    if !old.iter().any(|value| value.as_str() == Some(text)) {
        check_block_strict(path, text, errors);
    }
}

/// Returns whether the text of a block has numbers with leading zeros.
fn has_leading_zeros(text: &str) -> bool {
    let (address, bits) = text.split_once('/').unwrap_or((text, ""));
    address.parse::<IpAddr>().is_err() || (bits.len() > 1 && bits.starts_with('0'))
}

fn check_block_strict(path: &Path<'_>, text: &str, errors: &mut Errors) -> Option<Block> {
    let Some(block) = Block::parse_sloppy(text) else {
        errors.invalid_str(path, text, NO_BLOCK);
        return None;
    };
    let why = if has_leading_zeros(text) {
        "must not have leading 0s in IP or prefix length"
    } else if is_mapped(block.address) {
        "must not have an IPv4-mapped IPv6 address"
    } else if block.address != block.first() {
        "must not have bits set beyond the prefix length"
    } else {
        return Some(block);
    };
    errors.invalid_str(path, text, why);
    None
}

/// Checks a block of a new field, which must be written canonically.
pub fn check_block(path: &Path<'_>, text: &str, errors: &mut Errors) {
    let Some(block) = check_block_strict(path, text, errors) else { return };
    let canonical = block.canonical();
    if canonical != text {
        errors.invalid_str(path, text, format!("must be in canonical form ({})", quote(&canonical)));
    }
}

/// Checks the address of an interface with the length of its network prefix.
pub fn check_interface(path: &Path<'_>, text: &str, errors: &mut Errors) {
    let Some(block) = Block::parse_sloppy(text) else {
        errors.invalid_str(path, text, NO_INTERFACE);
        return;
    };
    let canonical = format!("{}/{}", canonical(block.address), block.bits);
    if canonical != text {
        errors.invalid_str(path, text, format!("must be in canonical form ({})", quote(&canonical)));
    }
}

/// Checks that an address can be an endpoint.
pub fn check_endpoint(path: &Path<'_>, text: &str, errors: &mut Errors) {
    let Some(address) = parse_sloppy(text) else {
        errors.invalid_str(path, text, "must be a valid IP address");
        return;
    };
    let address = match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    };
    if address.is_unspecified() {
        errors.invalid_str(path, text, format!("may not be unspecified ({text})"));
    }
    if address.is_loopback() {
        errors.invalid_str(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    let (link_local, multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => (v6.segments()[0] & 0xffc0 == 0xfe80, v6.segments()[0] & 0xff0f == 0xff02),
    };
    if link_local {
        errors.invalid_str(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if multicast {
        errors.invalid_str(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
}

/// Warns of an address that is not written canonically.
pub fn warn_address(path: &Path<'_>, text: &str, warnings: &mut Vec<String>) {
    let Some(address) = parse_sloppy(text) else { return };
    let canonical = canonical(address);
    if text.parse::<IpAddr>().is_err() || is_mapped(address) {
        let (text, canonical) = (quote(text), quote(&canonical));
        warnings.push(format!("{path}: non-standard IP address {text} is invalid: use {canonical}"));
    } else if address.is_ipv6() && canonical != text {
        let (text, canonical) = (quote(text), quote(&canonical));
        warnings.push(format!("{path}: IPv6 address {text} should be in RFC 5952 canonical format ({canonical})"));
    }
}

/// Warns of a block that is not written canonically.
pub fn warn_block(path: &Path<'_>, text: &str, warnings: &mut Vec<String>) {
    let Some(block) = Block::parse_sloppy(text) else { return };
    let (shown, network) = (quote(text), quote(&block.canonical()));
    let before = warnings.len();
    if block.address != block.first() {
        let all = if block.address.is_ipv4() { 32 } else { 128 };
        let single = quote(&format!("{}/{all}", canonical(block.address)));
        warnings.push(format!(
            "{path}: CIDR value {shown} is ambiguous in this context (should be {network} or {single}?)"
        ));
    }
    if has_leading_zeros(text) || is_mapped(block.address) {
        warnings.push(format!("{path}: non-standard CIDR value {shown} is invalid: use {network}"));
    }
    if warnings.len() == before && block.address.is_ipv6() && block.canonical() != text {
        warnings.push(format!("{path}: IPv6 CIDR value {shown} should be in RFC 5952 canonical format ({network})"));
    }
}

#[cfg(test)]
#[path = "addresses_tests.rs"]
mod tests;
