//! A span of time, as in `30s` or `1m30s`: Go's form, as in the flags of kube-apiserver.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use flotilla_proto::duration;
use serde::{Deserialize, Serialize};

use crate::text_options::as_text;

/// A span of time that is not negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(pub Duration);

/// The text is no span of time, or a negative one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no span of time, as in 30s or 1m30s")]
pub struct SpanError(String);

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let nanos = duration::parse(text).and_then(|nanos| u64::try_from(nanos).ok());
        nanos.map(|nanos| Self(Duration::from_nanos(nanos))).ok_or_else(|| SpanError(text.to_owned()))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&duration::format(i64::try_from(self.0.as_nanos()).unwrap_or(i64::MAX)))
    }
}

as_text!(Span);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_written_as_go_does() {
        for (text, seconds, shown) in [("30s", 30, "30s"), ("90s", 90, "1m30s"), ("0", 0, "0s")] {
            let span: Span = text.parse().unwrap();
            assert_eq!((span.0.as_secs(), span.to_string()), (seconds, shown.to_owned()));
        }
        for text in ["", "30", "-1s", "soon"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }
}
