//! The latest warnings and errors of the log, kept for the overview.

use std::collections::VecDeque;
use std::fmt::{Debug, Write as _};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::{limits, wall_clock};

/// A warning or an error of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    /// The time at which it was written, in seconds since 1970.
    pub at_seconds: f64,
    /// Whether it is an error.
    pub is_error: bool,
    /// The module that wrote it.
    pub target: String,
    /// Its message and fields, cut to [`limits::RECENT_WARNING_CHARACTERS`].
    pub text: String,
}

/// One list for the process, since it has one log; the oldest first.
static RECENT: Mutex<VecDeque<Warning>> = Mutex::new(VecDeque::new());

/// A layer of the log that keeps warnings and errors. For any other event it compares the level, and no more.
#[derive(Debug, Clone, Copy)]
pub struct WarningRecorder;

impl<S: Subscriber> Layer<S> for WarningRecorder {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if *metadata.level() > Level::WARN {
            return;
        }
        let mut event_text = EventText::default();
        event.record(&mut event_text);
        let text = event_text.message + &event_text.fields;
        // A terminal would obey control characters.
        let printable = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
        let text: String = printable.take(limits::RECENT_WARNING_CHARACTERS).collect();
        let at_seconds = wall_clock::unix_seconds();
        let is_error = *metadata.level() == Level::ERROR;
        let warning = Warning { at_seconds, is_error, target: metadata.target().to_owned(), text };
        let mut recent_warnings = RECENT.lock();
        if recent_warnings.len() >= limits::RECENT_WARNINGS {
            recent_warnings.pop_front();
        }
        recent_warnings.push_back(warning);
    }
}

/// Returns the latest warnings and errors, the newest first.
pub fn recent_warnings() -> Vec<Warning> {
    RECENT.lock().iter().rev().cloned().collect()
}

/// The text of an event: its message, and its fields.
#[derive(Default)]
struct EventText {
    message: String,
    fields: String,
}

impl EventText {
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

impl Visit for EventText {
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
    fn only_warnings_and_errors_are_kept_with_their_fields() {
        let log = tracing_subscriber::registry().with(WarningRecorder);
        tracing::subscriber::with_default(log, || {
            tracing::info!("not kept by the recorder of warnings");
            for number in 0..2 * limits::RECENT_WARNINGS {
                tracing::warn!(number, name = "x", "kept by the recorder of warnings");
            }
            tracing::error!(long = "y".repeat(9_000), "failed in the test of the recorder");
        });
        let kept = recent_warnings();
        assert_eq!(kept.len(), limits::RECENT_WARNINGS);
        let text = |of: &str| kept.iter().find(|warning| warning.text.starts_with(of));
        assert!(text("not kept by the recorder").is_none());
        let last = format!("kept by the recorder of warnings number={} name=x", 2 * limits::RECENT_WARNINGS - 1);
        assert!(text("kept by the recorder").is_some_and(|warning| warning.text == last && !warning.is_error));
        let failed = text("failed in the test").expect("it is kept");
        assert!(failed.is_error && failed.text.chars().count() == limits::RECENT_WARNING_CHARACTERS);
    }
}
