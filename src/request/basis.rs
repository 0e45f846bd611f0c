//! The basis of the decisions about a write: the state by which this replica decides, and its recency.

use flotilla_cluster::Tenure;

/// The basis of the decisions about a write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Basis {
    /// A state with every write that was acknowledged before the request came.
    #[default]
    Current,
    /// The state of this replica, which may be older than the state that the client has seen elsewhere. A write that
    /// depends on the unchanged object proves the decision; anything else needs a confirmation first: see
    /// [`Basis::take_unconfirmed`].
    Unconfirmed,
    /// The state of a leader. A write that is made in its tenure proves that the state was current.
    Tenure {
        /// The tenure that the write demands.
        tenure: Tenure,
        /// UIDs of the quotas that this attempt has charged.
        charged: Vec<String>,
    },
    /// A state as for [`Basis::Current`], in a second attempt. The first one was made in a tenure and wrote nothing.
    CurrentAgain {
        /// UIDs of the quotas that the first attempt has charged. They are not charged again.
        charged: Vec<String>,
    },
}

impl Basis {
    /// Returns the basis of a decision that a leader makes in a tenure.
    pub const fn in_tenure(tenure: Tenure) -> Self {
        Self::Tenure { tenure, charged: Vec::new() }
    }

    /// Returns the tenure in which the write must be made. Returns `None` if any tenure will do.
    pub const fn tenure(&self) -> Option<Tenure> {
        match self {
            Self::Tenure { tenure, .. } => Some(*tenure),
            _ => None,
        }
    }

    /// Returns whether the state is unconfirmed. It counts as current from then on: the caller must confirm it.
    pub fn take_unconfirmed(&mut self) -> bool {
        let is_unconfirmed = *self == Self::Unconfirmed;
        if is_unconfirmed {
            *self = Self::Current;
        }
        is_unconfirmed
    }

    /// Ends an attempt in a tenure. Later decisions are based on a current state, which the caller must confirm.
    pub fn end_tenure(&mut self) {
        if let Self::Tenure { charged, .. } = self {
            *self = Self::CurrentAgain { charged: std::mem::take(charged) };
        }
    }

    /// Returns whether an attempt of this request has already charged the quota with this UID.
    pub fn has_charged(&self, quota: &str) -> bool {
        match self {
            Self::Tenure { charged, .. } | Self::CurrentAgain { charged } => charged.iter().any(|uid| uid == quota),
            Self::Current | Self::Unconfirmed => false,
        }
    }

    /// Notes the quotas that were charged. Only an attempt in a tenure may be followed by another one.
    pub fn note_charged(&mut self, quotas: Vec<String>) {
        if let Self::Tenure { charged, .. } = self {
            charged.extend(quotas);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unconfirmed_state_is_confirmed_once() {
        let mut basis = Basis::Unconfirmed;
        assert!(basis.take_unconfirmed() && !basis.take_unconfirmed());
        assert_eq!(basis, Basis::Current);
    }

    #[test]
    fn only_an_attempt_in_a_tenure_remembers_charges() {
        let mut basis = Basis::Current;
        basis.note_charged(vec!["a".into()]);
        assert!(!basis.has_charged("a"), "there is no second attempt");
        let mut basis = Basis::CurrentAgain { charged: vec!["a".into()] };
        basis.note_charged(vec!["b".into()]);
        assert!(basis.has_charged("a") && !basis.has_charged("b"));
        assert_eq!(basis.tenure(), None);
    }
}
