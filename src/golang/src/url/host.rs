//! Parses the host of a URL, with its port.

use super::Fault;
use super::escape::{UrlPart, unescape};
use crate::netip::Addr;

/// Parses a host and its port.
pub fn parse(scheme: &str, host: &str) -> Result<Vec<u8>, Fault> {
    match host.rfind('[') {
        Some(0) => return parse_literal(host),
        Some(_) => return Err(Fault::IpLiteral),
        None => {}
    }
    // Other schemes than HTTP's may list several hosts.
    let is_strict = matches!(scheme, "http" | "https");
    let colon = if is_strict { host.find(':') } else { host.rfind(':') };
    if let Some(colon) = colon {
        check_port(&host[colon..])?;
    }
    unescape(host, UrlPart::Host)
}

/// Checks that a port is empty or a colon before digits.
fn check_port(port: &str) -> Result<(), Fault> {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    if port.is_empty() || port.strip_prefix(':').is_some_and(is_port) {
        return Ok(());
    }
    Err(Fault::Port(port.to_owned()))
}

/// Reads an IPv6 address in brackets.
fn parse_literal(host: &str) -> Result<Vec<u8>, Fault> {
    let end = host.rfind(']').ok_or(Fault::Bracket)?;
    let (inner, port) = (&host[1..end], &host[end + 1..]);
    check_port(port)?;
    let address = match inner.find("%25") {
        Some(zone) => {
            let (address, zone) = inner.split_at(zone);
            [unescape(address, UrlPart::Host)?, unescape(zone, UrlPart::Zone)?].concat()
        }
        None => unescape(inner, UrlPart::Host)?,
    };
    if Addr::parse(&String::from_utf8_lossy(&address)).map_err(Fault::Host)?.is_v4() {
        return Err(Fault::IpLiteral);
    }
    Ok([b"[", &*address, b"]", port.as_bytes()].concat())
}
