//! Parses a URL without its fragment.

use super::escape::{UrlPart, unescape};
use super::host;
use super::{Fault, Url, UserInfo};

/// Parses a URL; that of a request must be absolute or begin with `/`.
pub fn parse(text: &str, of_request: bool) -> Result<Url, Fault> {
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(Fault::Control);
    }
    if text.is_empty() && of_request {
        return Err(Fault::Empty);
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = b"*".to_vec();
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    url.raw_query = query.to_owned();
    url.force_query = query.is_empty() && text.ends_with('?');
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        if of_request {
            return Err(Fault::Relative);
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err(Fault::Colon);
        }
    }
    let has_scheme = !url.scheme.is_empty();
    let has_authority = has_scheme || !of_request && !rest.starts_with("///");
    let path = match rest.strip_prefix("//").filter(|_| has_authority) {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            set_authority(&mut url, authority)?;
            path
        }
        None => {
            url.omit_host = has_scheme && rest.starts_with('/');
            rest
        }
    };
    url.set_path(path)?;
    Ok(url)
}

/// Splits off the scheme; without one the whole text is the rest.
fn split_scheme(text: &str) -> Result<(&str, &str), Fault> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b':' if index == 0 => return Err(Fault::Scheme),
            b':' => return Ok((&text[..index], &text[index + 1..])),
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            byte if byte.is_ascii_alphabetic() => {}
            _ => break,
        }
    }
    Ok(("", text))
}

fn set_authority(url: &mut Url, authority: &str) -> Result<(), Fault> {
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    url.host = host::parse(&url.scheme, host)?;
    let Some(user) = user else { return Ok(()) };
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !user.bytes().all(is_allowed) {
        return Err(Fault::User);
    }
    let (name, password) = user.split_once(':').map_or((user, None), |(name, password)| (name, Some(password)));
    let name = unescape(name, UrlPart::User)?;
    let password = password.map(|password| unescape(password, UrlPart::User)).transpose()?;
    url.user = Some(UserInfo { name, password });
    Ok(())
}
