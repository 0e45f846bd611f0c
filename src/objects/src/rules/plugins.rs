//! The admission plugins that concern a resource. Each resource keeps them, so that a write need not look them up.

use flotilla_proto::schema::Text;

/// A set of plugins, by their positions in the chain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PluginSet(u64);

impl PluginSet {
    /// The number of positions that a set has room for.
    pub const ROOM: usize = u64::BITS as usize;

    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Adds the plugin at a position, which must be below [`PluginSet::ROOM`].
    pub const fn insert(&mut self, position: usize) {
        self.0 |= 1 << position;
    }

    /// Returns the positions, in order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let position = rest.trailing_zeros() as usize;
            let is_some = rest != 0;
            rest &= rest.wrapping_sub(1);
            is_some.then_some(position)
        })
    }
}

/// The plugins within the server that have something to do in one operation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Steps {
    /// Those that prepare the server before everything else, and may have to wait.
    pub first: PluginSet,
    /// Those that may change the object or refuse it, before it is finished.
    pub mutating: PluginSet,
    /// Those that may refuse the finished object.
    pub validating: PluginSet,
    /// Those that may refuse the finished object after everything else, and may have to wait.
    pub last: PluginSet,
    /// Whether any of them decides by objects in the tables of the server.
    pub by_tables: bool,
    /// Whether any of them decides by something outside the server.
    pub by_outside: bool,
    /// Those that decide by objects in the tables of the server for some changes only.
    pub by_tables_for_some: PluginSet,
}

impl Steps {
    /// No steps.
    pub const NONE: &'static Self = &Self {
        first: PluginSet::NONE,
        mutating: PluginSet::NONE,
        validating: PluginSet::NONE,
        last: PluginSet::NONE,
        by_tables: false,
        by_outside: false,
        by_tables_for_some: PluginSet::NONE,
    };
}

/// The steps of one object or subresource, by operation.
pub type ByOperation = [Steps; 4];

/// The plugins that concern a resource and its subresources.
#[derive(Debug, Clone, Default)]
pub struct Concerned {
    /// The steps of the object itself.
    pub own: ByOperation,
    /// The steps of each subresource.
    pub parts: Vec<(Text, ByOperation)>,
}

impl Concerned {
    /// Returns the steps of a subresource, or of the object itself if `subresource` is empty. Returns `None` if the
    /// resource does not have the subresource.
    pub fn of(&self, subresource: &str) -> Option<&ByOperation> {
        match subresource {
            "" => Some(&self.own),
            name => self.parts.iter().find(|(part, _)| part == name).map(|(_, steps)| steps),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_come_in_order() {
        let mut set = PluginSet::default();
        assert_eq!(set.iter().count(), 0);
        [63, 0, 7].into_iter().for_each(|position| set.insert(position));
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 7, 63]);
    }
}
