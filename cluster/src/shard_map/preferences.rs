//! Preferred leaders of groups.

use super::{GroupNumber, ShardMap};

impl ShardMap {
    /// Returns the map in which `member` is the preferred leader of these groups. If `member` is `None`, they have no
    /// preferred leader in it. Returns `None` when this changes nothing.
    pub(crate) fn preferring(
        &self,
        group_numbers: impl IntoIterator<Item = GroupNumber>,
        member: Option<u64>,
    ) -> Option<ShardMap> {
        let mut preferred = self.preferred.clone();
        for group_number in group_numbers {
            match member {
                Some(member) => preferred.insert(group_number, member),
                None => preferred.remove(&group_number),
            };
        }
        (preferred != self.preferred).then(|| ShardMap { preferred, ..self.confirmed() })
    }

    /// Returns the map in which `member`, or no member, replaces any of the members `of` as preferred leader. `None`
    /// when none of them is preferred.
    pub(crate) fn preferring_instead(&self, of: &[u64], member: Option<u64>) -> Option<ShardMap> {
        let was_to =
            self.preferred.iter().filter(|(_, member)| of.contains(member)).map(|(group_number, _)| *group_number);
        self.preferring(was_to, member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replacement_inherits_the_preferences_for_its_member() {
        let map = ShardMap { epoch: 4, ..ShardMap::default() };
        let preferring = map.preferring([0, 2, 3], Some(7)).unwrap().preferring([2], Some(8)).unwrap();
        assert_eq!((preferring.epoch, &preferring.preferred), (6, &[(0, 7), (2, 8), (3, 7)].into()));
        assert_eq!(preferring.preferring([0, 3], Some(7)), None, "it is said already");
        let replaced = preferring.preferring_instead(&[7], Some(9)).unwrap();
        assert_eq!(replaced.preferred, [(0, 9), (2, 8), (3, 9)].into());
        assert_eq!(replaced.preferring_instead(&[7], Some(9)), None, "it was moved already");
        let removed = replaced.preferring_instead(&[9, 7], None).unwrap();
        assert_eq!(removed.preferred, [(2, 8)].into());
        assert_eq!(removed.preferring(0..=3, None).unwrap().preferred, [].into());
    }
}
