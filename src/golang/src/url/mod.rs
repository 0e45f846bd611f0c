//! URLs, parsed and formatted as Go's `net/url` does.

mod escape;
mod host;
mod parse;

pub use escape::{path_escape, query_escape};

use crate::limits::QUERY_PARAMETERS_MAX;
use crate::strconv::quote;
use escape::UrlPart;

/// The reason why a text is not a URL, with the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parse {}: {fault}", quote(text))]
pub struct Error {
    text: String,
    fault: Fault,
}

/// An error in a URL, in Go's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A control character anywhere.
    #[error("net/url: invalid control character in URL")]
    Control,
    /// No text where a request needs some.
    #[error("empty url")]
    Empty,
    /// A text that begins with `:`.
    #[error("missing protocol scheme")]
    Scheme,
    /// A relative URL where a request needs an absolute one.
    #[error("invalid URI for request")]
    Relative,
    /// A relative URL whose first segment could be mistaken for a scheme.
    #[error("first path segment in URL cannot contain colon")]
    Colon,
    /// A user with characters that are not allowed there.
    #[error("net/url: invalid userinfo")]
    User,
    /// Brackets around text that is not an IPv6 address.
    #[error("invalid IP-literal")]
    IpLiteral,
    /// A `[` without its `]`.
    #[error("missing ']' in host")]
    Bracket,
    /// A port that is not a number.
    #[error("invalid port {} after host", quote(.0))]
    Port(String),
    /// A character that is not allowed in a host.
    #[error("invalid character {} in host name", quote(.0))]
    HostSign(String),
    /// A `%` without two hexadecimal digits after it, or an escape that is not allowed there.
    #[error("invalid URL escape {}", quote(.0))]
    Escape(String),
    /// Brackets around text that is not an IP address.
    #[error("invalid host: {0}")]
    Host(crate::netip::AddrError),
}

/// A name and perhaps a password, as bytes that need not be UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserInfo {
    name: Vec<u8>,
    password: Option<Vec<u8>>,
}

impl UserInfo {
    /// Returns the user information in its escaped form.
    pub fn text(&self) -> String {
        let name = escape::escape(&self.name, UrlPart::User);
        match &self.password {
            Some(password) => format!("{name}:{}", escape::escape(password, UrlPart::User)),
            None => name,
        }
    }
}

/// A URL. Decoded parts are bytes, which need not be UTF-8.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Url {
    /// The scheme in lower case; empty for none.
    pub scheme: String,
    /// The text after the scheme if it does not begin with `/`.
    pub opaque: String,
    /// The user information before `@`.
    pub user: Option<UserInfo>,
    /// The host and its port.
    pub host: Vec<u8>,
    /// The decoded path.
    pub path: Vec<u8>,
    /// The path as it was written, if it differs from the default encoding of the path.
    raw_path: Option<String>,
    /// The query as it was written.
    pub raw_query: String,
    /// Whether the URL has a `?` without a query after it.
    force_query: bool,
    /// Whether the path stands right after the scheme, without `//` between them.
    omit_host: bool,
    /// The decoded fragment.
    pub fragment: Vec<u8>,
    raw_fragment: Option<String>,
}

impl Url {
    /// Parses a URL that may be relative and may have a fragment.
    ///
    /// # Errors
    /// When Go would refuse it, in Go's words.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (main, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = parse::parse(main, false).map_err(|fault| Error { text: main.to_owned(), fault })?;
        url.set_fragment(fragment).map_err(|fault| Error { text: text.to_owned(), fault })?;
        Ok(url)
    }

    /// Parses a URL as a request has it: absolute, or a path, without a fragment.
    ///
    /// # Errors
    /// When Go would refuse it, in Go's words.
    pub fn parse_request(text: &str) -> Result<Self, Error> {
        parse::parse(text, true).map_err(|fault| Error { text: text.to_owned(), fault })
    }

    fn set_fragment(&mut self, text: &str) -> Result<(), Fault> {
        self.fragment = escape::unescape(text, UrlPart::Fragment)?;
        self.raw_fragment = (escape::escape(&self.fragment, UrlPart::Fragment) != text).then(|| text.to_owned());
        Ok(())
    }

    fn set_path(&mut self, text: &str) -> Result<(), Fault> {
        self.path = escape::unescape(text, UrlPart::Path)?;
        self.raw_path = (escape::escape(&self.path, UrlPart::Path) != text).then(|| text.to_owned());
        Ok(())
    }

    /// Returns the escaped path.
    pub fn escaped_path(&self) -> String {
        match &self.raw_path {
            Some(raw) if escape::is_escaped(raw, UrlPart::Path) => raw.clone(),
            _ if self.path == b"*" => "*".to_owned(),
            _ => escape::escape(&self.path, UrlPart::Path),
        }
    }

    fn escaped_fragment(&self) -> String {
        match &self.raw_fragment {
            Some(raw) if escape::is_escaped(raw, UrlPart::Fragment) => raw.clone(),
            _ => escape::escape(&self.fragment, UrlPart::Fragment),
        }
    }

    /// Returns the host without its port and without brackets.
    pub fn hostname(&self) -> &[u8] {
        let host = self.split_host().0;
        host.strip_prefix(b"[").and_then(|inner| inner.strip_suffix(b"]")).unwrap_or(host)
    }

    /// Returns the port; empty for none.
    pub fn port(&self) -> &[u8] {
        self.split_host().1
    }

    fn split_host(&self) -> (&[u8], &[u8]) {
        let colon = self.host.iter().rposition(|&byte| byte == b':');
        match colon.map(|colon| self.host.split_at(colon)) {
            Some((host, port)) if port[1..].iter().all(u8::is_ascii_digit) => (host, &port[1..]),
            _ => (&self.host, b""),
        }
    }

    /// Returns the decoded parameters of the query in their order, without malformed ones. Empty if there are too many.
    pub fn query(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let settings = || self.raw_query.split('&');
        if settings().count() > QUERY_PARAMETERS_MAX {
            return Vec::new();
        }
        let read = |setting: &str| {
            let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
            let unescape = |text| escape::unescape(text, UrlPart::Query).ok();
            Some((unescape(key)?, unescape(value)?))
        };
        settings().filter(|setting| !setting.is_empty() && !setting.contains(';')).filter_map(read).collect()
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            self.write_place(f)?;
        } else {
            f.write_str(&self.opaque)?;
        }
        if self.force_query || !self.raw_query.is_empty() {
            write!(f, "?{}", self.raw_query)?;
        }
        if !self.fragment.is_empty() {
            write!(f, "#{}", self.escaped_fragment())?;
        }
        Ok(())
    }
}

impl Url {
    fn write_place(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let has_host = !self.host.is_empty();
        let has_place = has_host || self.user.is_some();
        let is_written = has_place || !self.scheme.is_empty() && !self.omit_host;
        if is_written && (has_place || !self.path.is_empty()) {
            f.write_str("//")?;
        }
        if let Some(user) = &self.user {
            write!(f, "{}@", user.text())?;
        }
        f.write_str(&escape::escape(&self.host, UrlPart::Host))?;
        let path = self.escaped_path();
        if has_host && !path.is_empty() && !path.starts_with('/') {
            f.write_str("/")?;
        }
        // A first segment with a colon would be read as a scheme.
        let is_first = self.scheme.is_empty() && !has_place;
        if is_first && path.split('/').next().is_some_and(|segment| segment.contains(':')) {
            f.write_str("./")?;
        }
        f.write_str(&path)
    }
}

#[cfg(test)]
mod tests;
