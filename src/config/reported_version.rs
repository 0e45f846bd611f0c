//! The version that `/version` states in place of the server's own.

use std::fmt;
use std::str::FromStr;

use flotilla_golang::strconv::quote;
use serde::{Deserialize, Serialize};

use crate::text_options::as_text;
use crate::version::RELEASE;

/// A version of the release of Kubernetes that this server implements, as in `v1.36.3-mine`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ReportedVersion(String);

/// The reason why the server cannot report a text as its version, in the words of kube-apiserver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReportedVersionError(String);

impl FromStr for ReportedVersion {
    type Err = ReportedVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let quoted = quote(text);
        let wrong = |why: String| Err(ReportedVersionError(why));
        let rest = text.strip_prefix('v').unwrap_or(text);
        let (numbers, extra) = rest.split_at(numbers_len(rest));
        let parts: Vec<&str> = numbers.split('.').collect();
        if numbers.is_empty() {
            return wrong(format!("could not parse {quoted} as version"));
        }
        if parts.len() != 3 {
            return wrong(format!("illegal version string {quoted}"));
        }
        if let Some(part) = parts.iter().find(|part| is_zero_prefixed(part)) {
            return wrong(format!("illegal zero-prefixed version component {} in {quoted}", quote(part)));
        }
        let Some(before_build) = before_build(extra) else {
            return wrong(format!("could not parse pre-release/metadata ({extra}) in version {quoted}"));
        };
        if let Some(part) = before_build.split('.').find(|part| is_number(part) && is_zero_prefixed(part)) {
            return wrong(format!("illegal zero-prefixed version component {} in {quoted}", quote(part)));
        }
        if numbers != RELEASE.trim_start_matches('v') {
            let release = quote(RELEASE);
            return wrong(format!("version {quoted} must match major/minor/patch of default version {release}"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for ReportedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

as_text!(ReportedVersion);

/// Returns the length of the numbers, with dots between them, at the start of a text.
fn numbers_len(text: &str) -> usize {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let dotted = &text[..end];
    let end = dotted.find("..").unwrap_or(dotted.len());
    if dotted.starts_with('.') { 0 } else { dotted[..end].trim_end_matches('.').len() }
}

/// Returns the pre-release in `extra`, the text after the numbers. It is empty if there is no pre-release. `None` if
/// `extra` is neither empty, nor a pre-release, nor build metadata, nor a pre-release with build metadata after it.
fn before_build(extra: &str) -> Option<&str> {
    let is_list = |text: &str| {
        let is_part = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        text.split('.').all(is_part)
    };
    let (before, build) = extra.split_once('+').map_or((extra, None), |(before, build)| (before, Some(build)));
    let before = if before.is_empty() { Some("") } else { before.strip_prefix('-').filter(|text| is_list(text)) };
    before.filter(|_| build.is_none_or(is_list))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_zero_prefixed(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_the_release_are_accepted() {
        for text in ["v1.36.3", "v1.36.3-custom", "v1.36.3+build.7", "v1.36.3-rc.1+flotilla.0.1.0-custom"] {
            assert_eq!(text.parse::<ReportedVersion>().map(String::from), Ok(text.to_owned()));
        }
    }

    #[test]
    fn other_texts_are_refused_in_the_words_of_kubernetes() {
        for (text, why) in [
            ("v", r#"could not parse "v" as version"#),
            ("v.1", r#"could not parse "v.1" as version"#),
            ("v1.36", r#"illegal version string "v1.36""#),
            ("v1.36..3", r#"illegal version string "v1.36..3""#),
            ("v1.36.03", r#"illegal zero-prefixed version component "03" in "v1.36.03""#),
            ("v1.36.3-01", r#"illegal zero-prefixed version component "01" in "v1.36.3-01""#),
            ("v1.36.3custom", r#"could not parse pre-release/metadata (custom) in version "v1.36.3custom""#),
            ("v1.36.3-a_b", r#"could not parse pre-release/metadata (-a_b) in version "v1.36.3-a_b""#),
            ("v1.36.3-", r#"could not parse pre-release/metadata (-) in version "v1.36.3-""#),
            ("v1.36.5", r#"version "v1.36.5" must match major/minor/patch of default version "v1.36.3""#),
        ] {
            assert_eq!(text.parse::<ReportedVersion>().map_err(|error| error.to_string()), Err(why.to_owned()));
        }
    }
}
