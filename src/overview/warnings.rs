//! The last warnings and errors of the log, kept for those who look later.

use std::collections::VecDeque;
use std::fmt::{Debug, Write as _};
use std::time::UNIX_EPOCH;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::{limits, wall_clock};

/// A line of the log that warns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    /// When it was written, in seconds since 1970.
    pub at_seconds: f64,
    /// Whether it tells of an error.
    pub is_error: bool,
    /// The module that wrote it.
    pub target: String,
    /// What it says, with its fields; shortened where it is long.
    pub text: String,
}

/// As the log, those of a process; the oldest first.
static RECENT: Mutex<VecDeque<Warning>> = Mutex::new(VecDeque::new());

/// A layer of the log that keeps warnings and errors. Of everything else it compares the level, and no more.
#[derive(Debug, Clone, Copy)]
pub struct Recorder;

impl<S: Subscriber> Layer<S> for Recorder {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if *metadata.level() > Level::WARN {
            return;
        }
        let mut said = Said::default();
        event.record(&mut said);
        let text = said.message + &said.fields;
        // Terminals would obey characters of control.
        let sayable = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
        let text: String = sayable.take(limits::RECENT_WARNING_CHARACTERS).collect();
        let at_seconds = wall_clock::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let is_error = *metadata.level() == Level::ERROR;
        let warning = Warning { at_seconds, is_error, target: metadata.target().to_owned(), text };
        let mut recent = RECENT.lock();
        if recent.len() >= limits::RECENT_WARNINGS {
            recent.pop_front();
        }
        recent.push_back(warning);
    }
}

/// The last warnings and errors, the newest first.
pub fn recent() -> Vec<Warning> {
    RECENT.lock().iter().rev().cloned().collect()
}

/// What an event says: its message, then its fields.
#[derive(Default)]
struct Said {
    message: String,
    fields: String,
}

impl Said {
    fn add(&mut self, field: &Field, value: impl FnOnce(&mut String)) {
        match field.name() {
            "message" => value(&mut self.message),
            name => {
                let _ = write!(self.fields, " {name}=");
                value(&mut self.fields);
            }
        }
    }
}

impl Visit for Said {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, |out| out.push_str(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field, |out| {
            let _ = write!(out, "{value:?}");
        });
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[test]
    fn warnings_are_kept_with_their_fields_and_no_others() {
        let log = tracing_subscriber::registry().with(Recorder);
        tracing::subscriber::with_default(log, || {
            tracing::info!("not kept by the recorder of warnings");
            for number in 0..2 * limits::RECENT_WARNINGS {
                tracing::warn!(number, name = "x", "kept by the recorder of warnings");
            }
            tracing::error!(long = "y".repeat(9_000), "failed in the test of the recorder");
        });
        let kept = recent();
        assert_eq!(kept.len(), limits::RECENT_WARNINGS);
        let text = |of: &str| kept.iter().find(|warning| warning.text.starts_with(of));
        assert!(text("not kept by the recorder").is_none());
        let last = format!("kept by the recorder of warnings number={} name=x", 2 * limits::RECENT_WARNINGS - 1);
        assert!(text("kept by the recorder").is_some_and(|warning| warning.text == last && !warning.is_error));
        let failed = text("failed in the test").expect("it is kept");
        assert!(failed.is_error && failed.text.chars().count() == limits::RECENT_WARNING_CHARACTERS);
    }
}
