//! Parses IP addresses, with the faults that Go finds in them.

use std::net::Ipv6Addr;

use super::addr::{Addr, AddrFault};

/// A fault, and the rest of the text, which begins at the fault.
pub(super) type Fail<'t> = (AddrFault, &'t str);

pub(super) fn parse_v4(text: &str) -> Result<[u8; 4], Fail<'_>> {
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

pub(super) fn parse_v6(text: &str) -> Result<Addr, Fail<'_>> {
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
