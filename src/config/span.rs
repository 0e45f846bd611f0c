//! Spans of time that options state as Go writes them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use flotilla_proto::duration;
use serde::{Deserialize, Serialize};

/// A span of time, as `2m0s`. It is not negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(pub Duration);

/// Why a text is no span.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a span of time, as 30s or 2m0s")]
pub struct SpanError(String);

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let nanos = duration::parse(text).and_then(|nanos| u64::try_from(nanos).ok());
        nanos.map(|nanos| Self(Duration::from_nanos(nanos))).ok_or_else(|| SpanError(text.to_owned()))
    }
}

impl TryFrom<String> for Span {
    type Error = SpanError;

    fn try_from(text: String) -> Result<Self, SpanError> {
        text.parse()
    }
}

impl From<Span> for String {
    fn from(span: Span) -> Self {
        span.to_string()
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&duration::format(i64::try_from(self.0.as_nanos()).unwrap_or(i64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_written_as_in_go() {
        let span = |text: &str| text.parse::<Span>();
        assert_eq!(span("90s").unwrap().to_string(), "1m30s");
        assert_eq!(span("0").unwrap().0, Duration::ZERO);
        for wrong in ["", "5", "-1s", "x"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }
}
