//! Decides which mutating policies and webhooks run a second time, because the object changed after they saw it.

use std::collections::HashSet;

use flotilla_proto::value::Value;

/// The plugins that run again. If any plugin changed the object in the first round, the server's own plugins, policies
/// and webhooks run in a second round. There is never a third.
#[derive(Debug, Default)]
pub struct Reinvocation {
    /// Whether this is the second round.
    pub is_second: bool,
    /// Whether the object changed. A second round then follows.
    pub is_wanted: bool,
    /// The policies that ran.
    pub policies: Invoked,
    /// The webhooks that ran.
    pub webhooks: Invoked,
}

/// The policies or webhooks of one plugin that ran, by keys that the plugin chooses.
#[derive(Debug, Default)]
pub struct Invoked {
    /// The object when the plugin finished its round.
    left: Option<Value>,
    /// The keys of policies or webhooks that ran since the object changed last, and may run again.
    willing: HashSet<String>,
    /// The keys of policies or webhooks that must run in the second round.
    again: HashSet<String>,
}

impl Invoked {
    /// Begins a round. If the object changed since the plugin's first round, all policies or webhooks that may run
    /// again must run again.
    pub fn begin(&mut self, is_second: bool, object: Option<&Value>) {
        if is_second && self.left.as_ref() != object {
            self.changed();
        }
    }

    /// Ends a round with this object.
    pub fn end(&mut self, object: Option<&Value>) {
        self.left = object.cloned();
    }

    /// Records a change of the object. All policies or webhooks that ran before it and may run again must run again.
    pub fn changed(&mut self) {
        self.again.extend(self.willing.drain());
    }

    /// Records that a policy or webhook ran and may run again.
    pub fn is_willing(&mut self, name: &str) {
        self.willing.insert(name.to_owned());
    }

    /// Returns whether a policy or webhook must run in the second round.
    pub fn is_due(&self, name: &str) -> bool {
        self.again.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn plugins_that_ran_before_a_change_run_again() {
        let mut invoked = Invoked::default();
        let (first, second) = (value!({"a": 1}), value!({"a": 2}));
        invoked.begin(false, Some(&first));
        invoked.is_willing("a");
        invoked.changed();
        invoked.is_willing("b");
        invoked.end(Some(&first));
        invoked.begin(true, Some(&first));
        assert!(invoked.is_due("a") && !invoked.is_due("b"));
        invoked.begin(true, Some(&second));
        assert!(invoked.is_due("b"));
    }
}
