//! Parses the values of flags, with the error messages of Go's libraries.

use std::net::IpAddr;

use flotilla_golang::strconv;
use flotilla_proto::duration;
use flotilla_proto::quantity::Quantity;

use super::table::Kind;
use crate::config::{PortRange, ReportedVersion};

/// Parses a value; returns its parts, each in canonical form.
///
/// # Errors
/// If the text is not a value of this kind. The message is Go's.
pub fn parts(kind: Kind, text: &str) -> Result<Vec<String>, String> {
    let number = |error: strconv::NumberError| error.to_string();
    let whole = || Ok(vec![text.to_owned()]);
    match kind {
        Kind::Text | Kind::Texts | Kind::Patterns | Kind::NamedKeys => whole(),
        Kind::Bool => Ok(vec![strconv::parse_bool(text).map_err(number)?.to_string()]),
        Kind::Int => Ok(vec![strconv::parse_int(text).map_err(number)?.to_string()]),
        Kind::Level => strconv::parse_int(text).map_err(number).and_then(|_| whole()),
        Kind::Float | Kind::Float32 => strconv::parse_float(text).map_err(number).and_then(|_| whole()),
        Kind::Duration => span(text).and_then(|_| whole()),
        Kind::Ip => match text.trim().parse::<IpAddr>() {
            Ok(address) => Ok(vec![address.to_string()]),
            Err(_) => Err(format!("failed to parse IP: {}", strconv::quote(text.trim()))),
        },
        Kind::Strings => comma_separated(text),
        Kind::Pairs => pairs(text),
        Kind::Settings | Kind::Gates => {
            Ok(text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect())
        }
        Kind::Labels => comma_separated(text)?.into_iter().map(labelled).collect(),
        Kind::PortRange => Ok(vec![port_range(text)?.to_string()]),
        Kind::Quantity => match Quantity::parse(text) {
            Ok(_) => whole(),
            Err(_) => {
                Err("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
                    .into())
            }
        },
        Kind::Integers => {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            parts.map(|part| strconv::parse_int(part).map_err(number).map(|number| number.to_string())).collect()
        }
        Kind::Version => version(text),
    }
}

/// Parses a duration; returns nanoseconds.
///
/// # Errors
/// If the text is not a duration.
pub fn span(text: &str) -> Result<i64, String> {
    duration::parse(text).ok_or_else(|| {
        let quoted = strconv::quote(text);
        let is_bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        if is_bare {
            format!("time: missing unit in duration {quoted}")
        } else if unit.len() < text.len() && unit.chars().all(char::is_alphabetic) {
            format!("time: unknown unit {} in duration {quoted}", strconv::quote(unit))
        } else {
            format!("time: invalid duration {quoted}")
        }
    })
}

/// Returns the fields of a line of comma-separated values (RFC 4180); empty for an empty line.
fn comma_separated(text: &str) -> Result<Vec<String>, String> {
    let (mut parts, mut rest) = (Vec::new(), text);
    if text.is_empty() {
        return Ok(parts);
    }
    loop {
        let column = text.len() - rest.len() + 1;
        let part = if let Some(quoted) = rest.strip_prefix('"') {
            let (part, after) = quoted_field(quoted).ok_or_else(|| {
                format!("parse error on line 1, column {column}: extraneous or missing \" in quoted-field")
            })?;
            rest = after;
            part
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            let part = &rest[..end];
            if let Some(quote) = part.find('"') {
                return Err(format!("parse error on line 1, column {}: bare \" in non-quoted field", column + quote));
            }
            rest = &rest[end..];
            part.to_owned()
        };
        parts.push(part);
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Ok(parts),
        }
    }
}

/// Returns a field after its opening quote, and the rest after its closing quote. Returns `None` if the closing quote
/// is missing, or if text other than a comma follows it.
fn quoted_field(text: &str) -> Option<(String, &str)> {
    let (mut field, mut rest) = (String::new(), text);
    loop {
        let end = rest.find('"')?;
        field.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                field.push('"');
                rest = more;
            }
            None => return (rest.is_empty() || rest.starts_with(',')).then_some((field, rest)),
        }
    }
}

fn pairs(text: &str) -> Result<Vec<String>, String> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let pair = |pair: &str| match pair.split_once('=') {
        Some((key, value)) => Ok(format!("{}={}", key.trim(), value.trim())),
        None => Err("malformed pair, expect string=string".to_owned()),
    };
    pairs.map(pair).collect()
}

fn labelled(text: String) -> Result<String, String> {
    if text.contains('=') { Ok(text) } else { Err(format!("{text} must be formatted as key=value")) }
}

/// Parses a range of ports: `30000-32767`, `30000+2767`, or one port.
fn port_range(text: &str) -> Result<PortRange, String> {
    let port = |text: &str| match text.parse::<u16>() {
        Ok(port) => Ok(port),
        Err(_) if strconv::parse_int(text).is_ok() => {
            Err(format!("the port range cannot be greater than 65535: {text}"))
        }
        Err(_) => Err(format!("strconv.Atoi: parsing {}: invalid syntax", strconv::quote(text))),
    };
    let text = text.trim();
    let (first, last) = if let Some((first, last)) = text.split_once('-') {
        (port(first)?, port(last)?)
    } else if let Some((first, more)) = text.split_once('+') {
        let first = port(first)?;
        (first, first.checked_add(port(more)?).ok_or("the port range cannot be greater than 65535")?)
    } else {
        (port(text)?, port(text)?)
    };
    if last < first {
        return Err(format!("end port cannot be less than start port: {text}"));
    }
    format!("{first}-{last}").parse().map_err(|error: crate::config::CidrError| error.to_string())
}

/// Parses the value of `--version`; a version to report must be a build of this release.
fn version(text: &str) -> Result<Vec<String>, String> {
    match text {
        "raw" => Ok(vec![text.to_owned()]),
        _ if text.starts_with('v') => match text.parse::<ReportedVersion>() {
            Ok(version) => Ok(vec![version.into()]),
            Err(error) => Err(error.to_string()),
        },
        _ => strconv::parse_bool(text).map(|shown| vec![shown.to_string()]).map_err(|error| error.to_string()),
    }
}
