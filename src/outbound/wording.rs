//! Translates errors of TLS and HTTP into Go's words.

use std::error::Error as StdError;
use std::io::{self, ErrorKind};

use rustls::pki_types::{ServerName, UnixTime};
use rustls::{AlertDescription, CertificateError, InvalidMessage};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::Error;
use super::error::NAMELESS;

/// Go's text for a server that answers a TLS handshake without TLS.
pub const PLAIN_SERVER: &str = "http: server gave HTTP response to HTTPS client";

/// Describes why a handshake with the peer of this name failed.
pub fn handshake(error: &io::Error, name: &ServerName<'_>, ends: &str) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(why)) => {
            format!("tls: failed to verify certificate: x509: {}", certificate(why, name))
        }
        Some(rustls::Error::AlertReceived(alert)) => format!("remote error: tls: {}", alert_text(*alert)),
        Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => PLAIN_SERVER.into(),
        Some(rustls::Error::General(text)) => text.clone(),
        Some(other) => format!("tls: {other}"),
        None => broken(error, ends),
    }
}

fn certificate(error: &CertificateError, name: &ServerName<'_>) -> String {
    let validity = |why: String| format!("certificate has expired or is not yet valid: {why}");
    match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".into()
        }
        CertificateError::ExpiredContext { time, not_after } => {
            validity(format!("current time {} is after {}", shown(*time), shown(*not_after)))
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            validity(format!("current time {} is before {}", shown(*time), shown(*not_before)))
        }
        CertificateError::NotValidForNameContext { presented, .. } => wrong_name(presented, &name.to_str()),
        CertificateError::NotValidForName => wrong_name(&[], &name.to_str()),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "certificate specifies an incompatible key usage".into()
        }
        other => other.to_string(),
    }
}

/// Describes a certificate that is valid only for other names than `wanted`. Entries of `presented` look like
/// `DnsName("a")` and `IpAddress(1.2.3.4)`.
fn wrong_name(presented: &[String], wanted: &str) -> String {
    let of_kind = |kind: &str| -> Vec<String> {
        let entries = presented.iter().filter_map(|entry| entry.strip_prefix(kind)?.strip_suffix(')'));
        entries.map(|entry| entry.trim_matches('"').to_owned()).collect()
    };
    let is_address = wanted.parse::<std::net::IpAddr>().is_ok();
    let valid = of_kind(if is_address { "IpAddress(" } else { "DnsName(" });
    if presented.is_empty() && !is_address {
        return NAMELESS.into();
    }
    match (valid.is_empty(), is_address) {
        (true, true) => format!("cannot validate certificate for {wanted} because it doesn't contain any IP SANs"),
        (true, false) => format!("certificate is not valid for any names, but wanted to match {wanted}"),
        _ => format!("certificate is valid for {}, not {wanted}", valid.join(", ")),
    }
}

fn shown(at: UnixTime) -> String {
    let seconds = i64::try_from(at.as_secs()).unwrap_or(i64::MAX);
    let text = OffsetDateTime::from_unix_timestamp(seconds).ok().and_then(|time| time.format(&Rfc3339).ok());
    text.unwrap_or_else(|| seconds.to_string())
}

fn alert_text(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::BadCertificate => "bad certificate".into(),
        AlertDescription::CertificateRequired => "certificate required".into(),
        AlertDescription::CertificateExpired => "expired certificate".into(),
        AlertDescription::CertificateUnknown => "unknown certificate".into(),
        AlertDescription::UnknownCA => "unknown certificate authority".into(),
        AlertDescription::HandshakeFailure => "handshake failure".into(),
        AlertDescription::ProtocolVersion => "protocol version not supported".into(),
        AlertDescription::InternalError => "internal error".into(),
        AlertDescription::UnrecognisedName => "unrecognized name".into(),
        AlertDescription::NoApplicationProtocol => "no application protocol".into(),
        AlertDescription::AccessDenied => "access denied".into(),
        other => format!("{other:?}"),
    }
}

/// Describes why a connection failed.
fn broken(error: &io::Error, ends: &str) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof => "EOF".into(),
        ErrorKind::ConnectionReset => format!("read tcp {ends}: read: connection reset by peer"),
        ErrorKind::BrokenPipe => format!("write tcp {ends}: write: broken pipe"),
        ErrorKind::TimedOut => format!("read tcp {ends}: read: connection timed out"),
        _ => error.to_string(),
    }
}

/// Returns the error for a request to which no answer began.
pub fn request(error: &hyper::Error, ends: &str) -> Error {
    Error::Broken(text(error, ends, "EOF"))
}

/// Returns the error for an answer whose body ended too early.
pub fn body(error: &hyper::Error, ends: &str) -> Error {
    Error::Broken(text(error, ends, "unexpected EOF"))
}

fn text(error: &hyper::Error, ends: &str, end: &str) -> String {
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return end.to_owned();
    }
    if error.is_parse() {
        return "net/http: HTTP/1.x transport connection broken: malformed HTTP response".into();
    }
    let mut source: Option<&(dyn StdError + 'static)> = error.source();
    while let Some(inner) = source {
        if let Some(error) = inner.downcast_ref::<io::Error>() {
            let why = broken(error, ends);
            return if why == "EOF" { end.to_owned() } else { why };
        }
        if inner.source().is_none() {
            return format!("http2: {inner}");
        }
        source = inner.source();
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_certificate_is_for() {
        let of = |presented: &[&str], wanted: &str| {
            wrong_name(&presented.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), wanted)
        };
        let both = ["DnsName(\"a.example\")", "DnsName(\"b.example\")", "IpAddress(1.2.3.4)"];
        assert_eq!(of(&both, "c"), "certificate is valid for a.example, b.example, not c");
        assert_eq!(of(&both, "1.2.3.5"), "certificate is valid for 1.2.3.4, not 1.2.3.5");
        assert_eq!(of(&both[..1], "::1"), "cannot validate certificate for ::1 because it doesn't contain any IP SANs");
        assert_eq!(of(&both[2..], "c"), "certificate is not valid for any names, but wanted to match c");
        assert_eq!(of(&[], "c"), "certificate relies on legacy Common Name field, use SANs instead");
    }

    #[test]
    fn times_are_shown_in_utc() {
        let at = UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_600_000_000));
        assert_eq!(shown(at), "2020-09-13T12:26:40Z");
    }
}
