//! The stages of a request at which events are recorded.

use compact_str::CompactString;

use crate::field::{Errors, Path};

/// The moment of a request at which an event is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The user is authenticated, and nothing else is done yet.
    RequestReceived,
    /// The head of the answer of a long-running request is sent.
    ResponseStarted,
    /// Nothing more of the answer will be sent.
    ResponseComplete,
    /// The server failed to answer.
    Panic,
}

impl Stage {
    const ALL: [Self; 4] = [Self::RequestReceived, Self::ResponseStarted, Self::ResponseComplete, Self::Panic];

    /// Returns the name in policies and events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
            Self::Panic => "Panic",
        }
    }
}

/// A set of stages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stages(u8);

impl Stages {
    /// Returns whether a stage is in the set.
    pub const fn has(self, stage: Stage) -> bool {
        self.0 & (1 << stage as u8) != 0
    }

    /// Returns the stages that are in either set.
    #[must_use]
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the stages of these names.
    pub(super) fn of(names: &[CompactString], path: &Path<'_>, errors: &mut Errors) -> Self {
        let mut all = Self::default();
        for (at, name) in names.iter().enumerate() {
            match Stage::ALL.into_iter().find(|stage| stage.name() == name) {
                Some(stage) => all.0 |= 1 << stage as u8,
                None => {
                    let why = format!("allowed stages are {}", Stage::ALL.map(Stage::name).join(","));
                    errors.invalid_str(&path.index(at), name, why);
                }
            }
        }
        all
    }
}
