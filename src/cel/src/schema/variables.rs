//! `self` and `oldSelf` at a position of an object, as expressions ask for them.

use flotilla_proto::value::Value as Tree;

use super::compiled::{OLD_SELF, SELF};
use crate::error::Outcome;
use crate::eval::Bindings;
use crate::value::{Shape, Value};

/// `self` and `oldSelf` at a position.
pub(super) struct Variables<'a> {
    new: Outcome<Value<'a>>,
    old: Option<Outcome<Value<'a>>>,
    has_old: bool,
}

impl<'a> Variables<'a> {
    /// Reads the values at a position; `uses_old_self` is whether any rule asks for the old one.
    pub(super) fn new(shape: Shape<'a>, new: &'a Tree, old: Option<&'a Tree>, uses_old_self: bool) -> Self {
        let read = |tree: &'a Tree| Value::of_shaped_tree(tree, shape);
        Self { new: read(new), old: old.filter(|_| uses_old_self).map(read), has_old: uses_old_self }
    }

    /// Returns the variables of one rule; `is_optional` is whether its `oldSelf` is an optional.
    pub(super) fn with(&self, is_optional: bool) -> Slots<'_, 'a> {
        Slots { variables: self, is_optional }
    }
}

/// The variables by their slots.
pub(super) struct Slots<'v, 'a> {
    variables: &'v Variables<'a>,
    /// Whether `oldSelf` is an optional.
    is_optional: bool,
}

impl<'a> Bindings<'a> for Slots<'_, 'a> {
    fn get(&self, slot: usize) -> Option<Outcome<Value<'a>>> {
        match (slot, self.is_optional) {
            (SELF, _) => Some(self.variables.new.clone()),
            (OLD_SELF, false) => self.variables.old.clone(),
            (OLD_SELF, true) if self.variables.has_old => Some(match &self.variables.old {
                Some(old) => old.clone().map(Value::some),
                None => Ok(Value::none()),
            }),
            _ => None,
        }
    }
}
