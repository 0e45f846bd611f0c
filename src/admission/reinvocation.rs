//! Asking again: what changes an object may be asked once more when others changed it afterwards.

use std::collections::HashSet;

use flotilla_proto::value::Value;

/// Whether and what is asked again. When anything changed the object in the first round there is a second one, of the
/// server's own plugins as of those from outside, and no third.
#[derive(Debug, Default)]
pub struct Reinvocation {
    /// Whether this is the second round.
    pub is_second: bool,
    /// Whether the object was changed, so that there is to be a second round.
    pub is_wanted: bool,
    /// The policies that were asked.
    pub policies: Invoked,
    /// The webhooks that were asked.
    pub webhooks: Invoked,
}

/// What one plugin has asked, by names of its own.
#[derive(Debug, Default)]
pub struct Invoked {
    /// The object as the plugin left it.
    left: Option<Value>,
    /// Asked since the object changed last, and willing to be asked again.
    willing: HashSet<String>,
    /// To be asked again in the second round.
    again: HashSet<String>,
}

impl Invoked {
    /// A round begins: what others changed meanwhile is to be seen by all that are willing.
    pub fn begin(&mut self, is_second: bool, object: Option<&Value>) {
        if is_second && self.left.as_ref() != object {
            self.changed();
        }
    }

    /// A round ends with this object.
    pub fn end(&mut self, object: Option<&Value>) {
        self.left = object.cloned();
    }

    /// The object was changed: all that were asked before and are willing are to be asked again.
    pub fn changed(&mut self) {
        self.again.extend(self.willing.drain());
    }

    /// This one was asked, and is willing to be asked again.
    pub fn is_willing(&mut self, name: &str) {
        self.willing.insert(name.to_owned());
    }

    /// Whether this one is to be asked in the second round.
    pub fn is_due(&self, name: &str) -> bool {
        self.again.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn those_before_a_change_are_asked_again() {
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
