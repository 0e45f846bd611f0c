//! Semantic versions (semver.org, 2.0.0), read as the Go library `github.com/blang/semver` reads them.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::strconv::{NumberError, parse_uint, quote};

/// A version.
#[derive(Debug, Clone, Default)]
pub struct SemanticVersion {
    /// The number before the first dot.
    pub major: u64,
    /// The number between the dots.
    pub minor: u64,
    /// The number after the second dot.
    pub patch: u64,
    prerelease: Vec<PrereleasePart>,
    build: Vec<String>,
}

/// A part of a prerelease. Numbers come before text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum PrereleasePart {
    Number(u64),
    Text(String),
}

/// The reason why a text is no version, in the words of the Go library.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SemanticVersionError {
    /// The text is empty.
    #[error("Version string empty")]
    Empty,
    /// The text has fewer than three numbers.
    #[error("No Major.Minor.Patch elements found")]
    Elements,
    /// One of the three numbers has other characters than digits.
    #[error("Invalid character(s) found in {0} number {text}", text = quote(.1))]
    NumberCharacters(String, String),
    /// One of the three numbers begins with a needless zero.
    #[error("{0} number must not contain leading zeroes {text}", text = quote(.1))]
    NumberZeros(&'static str, String),
    /// A number has too many digits.
    #[error(transparent)]
    Number(#[from] NumberError),
    /// A part of the prerelease is empty.
    #[error("Prerelease is empty")]
    PrereleaseEmpty,
    /// A number of the prerelease begins with a needless zero.
    #[error("Numeric PreRelease version must not contain leading zeroes {text}", text = quote(.0))]
    PrereleaseZeros(String),
    /// A part of the prerelease has other characters than letters, digits and dashes.
    #[error("Invalid character(s) found in prerelease {text}", text = quote(.0))]
    PrereleaseCharacters(String),
    /// A part of the build metadata is empty.
    #[error("Build meta data is empty")]
    BuildEmpty,
    /// A part of the build metadata has other characters than letters, digits and dashes.
    #[error("Invalid character(s) found in build meta data {text}", text = quote(.0))]
    BuildCharacters(String),
}

impl SemanticVersion {
    /// Compares two versions; ignores build metadata.
    pub fn precedence(&self, other: &Self) -> Ordering {
        let numbers = |version: &Self| (version.major, version.minor, version.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                _ => self.prerelease.cmp(&other.prerelease),
            }
        })
    }
}

impl fmt::Display for SemanticVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}.{}", self.major, self.minor, self.patch)?;
        for (place, part) in self.prerelease.iter().enumerate() {
            let sign = if place == 0 { '-' } else { '.' };
            match part {
                PrereleasePart::Number(number) => write!(out, "{sign}{number}")?,
                PrereleasePart::Text(part) => write!(out, "{sign}{part}")?,
            }
        }
        for (place, part) in self.build.iter().enumerate() {
            write!(out, "{}{part}", if place == 0 { '+' } else { '.' })?;
        }
        Ok(())
    }
}

impl FromStr for SemanticVersion {
    type Err = SemanticVersionError;

    fn from_str(text: &str) -> Result<Self, SemanticVersionError> {
        if text.is_empty() {
            return Err(SemanticVersionError::Empty);
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(SemanticVersionError::Elements);
        };
        let (major, minor) = (number(major, "Major")?, number(minor, "Minor")?);
        let (rest, builds) = rest.split_once('+').map_or((rest, None), |(rest, builds)| (rest, Some(builds)));
        let (patch, prerelease) = rest.split_once('-').map_or((rest, None), |(patch, parts)| (patch, Some(parts)));
        let patch = number(patch, "Patch")?;
        let prerelease =
            prerelease.into_iter().flat_map(|parts| parts.split('.')).map(part).collect::<Result<_, _>>()?;
        let build = builds.into_iter().flat_map(|parts| parts.split('.')).map(build).collect::<Result<_, _>>()?;
        Ok(Self { major, minor, patch, prerelease, build })
    }
}

fn number(text: &str, name: &'static str) -> Result<u64, SemanticVersionError> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(SemanticVersionError::NumberCharacters(name.to_ascii_lowercase(), text.to_owned()));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(SemanticVersionError::NumberZeros(name, text.to_owned()));
    }
    Ok(parse_uint(text)?)
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn part(text: &str) -> Result<PrereleasePart, SemanticVersionError> {
    if text.is_empty() {
        return Err(SemanticVersionError::PrereleaseEmpty);
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(SemanticVersionError::PrereleaseZeros(text.to_owned()));
        }
        return Ok(PrereleasePart::Number(parse_uint(text)?));
    }
    if is_word(text) {
        return Ok(PrereleasePart::Text(text.to_owned()));
    }
    Err(SemanticVersionError::PrereleaseCharacters(text.to_owned()))
}

fn build(text: &str) -> Result<String, SemanticVersionError> {
    if text.is_empty() {
        return Err(SemanticVersionError::BuildEmpty);
    }
    if is_word(text) {
        return Ok(text.to_owned());
    }
    Err(SemanticVersionError::BuildCharacters(text.to_owned()))
}
