//! Compares two objects field by field, as apply divides them.
//!
//! Both trees are walked side by side. Equal subtrees cost one comparison and no look-up in the schema. A change of one
//! field of a large object therefore costs little more than finding it.

use flotilla_proto::schema::{List, Type};
use flotilla_proto::value::{Map, Str, Value};

use super::added::added;
use super::element::{self, ItemError};
use super::form::{Form, Members, Parts, items, members};
use super::set;

/// How an element changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    /// It did not change itself; elements below it may have.
    Kept,
    /// It was removed.
    Removed,
    /// It was added, or its value changed.
    Touched,
}

/// How an element and the elements below it changed.
#[derive(Debug)]
pub struct ElementChange {
    mark: Mark,
    below: Vec<(Str, ElementChange)>,
    /// The set below an element that was added. `below` is empty then.
    added: Option<Map>,
}

/// Fields of `metadata` that never have an owner.
const UNOWNED: [&str; 9] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// Returns whether a member never has an owner. `parent` is `None` for members of the object itself.
pub fn is_unowned(parent: Option<&str>, key: &str) -> bool {
    match parent {
        None => matches!(key, "apiVersion" | "kind"),
        Some("metadata") => UNOWNED.contains(&key),
        Some(_) => false,
    }
}

/// Compares two objects of one type. Fields that never have an owner are left out.
///
/// # Errors
/// A list holds an item that has no identity.
pub fn compare(of: &Type, old: &Value, new: &Value) -> Result<ElementChange, ItemError> {
    let mut root = ElementChange::KEPT;
    let mut form = Members::of(Form::of_type(of));
    let mut walk = |key: &str, old: Option<&Value>, new: Option<&Value>| {
        if key == "metadata" {
            let mut form = Members::of(Form::of_type(of).member(key).unwrap_or(Form::Deduced));
            let mut metadata = ElementChange::KEPT;
            each_member(members(old), members(new), |name, old, new| {
                if is_unowned(Some(key), name) {
                    return Ok(());
                }
                metadata.member(&mut form, name, old, new)
            })?;
            root.push(element::of_name(key), metadata);
            return Ok(());
        }
        if is_unowned(None, key) { Ok(()) } else { root.member(&mut form, key, old, new) }
    };
    each_member(members(Some(old)), members(Some(new)), &mut walk)?;
    Ok(root)
}

/// Visits each key of both maps once: first the keys of `new` in order, then those that only `old` has.
fn each_member<'v>(
    old: Option<&'v Map>,
    new: Option<&'v Map>,
    mut visit: impl FnMut(&str, Option<&'v Value>, Option<&'v Value>) -> Result<(), ItemError>,
) -> Result<(), ItemError> {
    let mut shared = 0;
    for (key, new) in new.into_iter().flat_map(Map::iter) {
        let old = old.and_then(|old| old.get(key));
        shared += usize::from(old.is_some());
        visit(key, old, Some(new))?;
    }
    if old.is_some_and(|old| old.len() > shared) {
        for (key, old) in old.into_iter().flat_map(Map::iter) {
            if new.is_none_or(|new| !new.contains_key(key)) {
                visit(key, Some(old), None)?;
            }
        }
    }
    Ok(())
}

impl ElementChange {
    const KEPT: Self = Self { mark: Mark::Kept, below: Vec::new(), added: None };

    /// Returns whether nothing changed.
    pub fn is_none(&self) -> bool {
        self.mark == Mark::Kept && self.below.is_empty()
    }

    fn mark(&mut self, mark: Mark) {
        self.mark = self.mark.max(mark);
    }

    fn push(&mut self, element: Str, change: Self) {
        if !change.is_none() {
            self.below.push((element, change));
        }
    }

    fn member(
        &mut self,
        form: &mut Members<'_>,
        key: &str,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> Result<(), ItemError> {
        if old == new {
            return Ok(());
        }
        let mut change = Self::KEPT;
        change.walk(form.any(key), old, new)?;
        self.push(element::of_name(key), change);
        Ok(())
    }

    /// Compares two values of one form that are not equal. At least one of them is present.
    fn walk(&mut self, form: Form<'_>, old: Option<&Value>, new: Option<&Value>) -> Result<(), ItemError> {
        if let (None, Some(new)) = (old, new) {
            self.mark(Mark::Touched);
            self.added = Some(added(form, new)?);
            return Ok(());
        }
        let leaf = match (old.map(|old| form.parts(old)), new.map(|new| form.parts(new))) {
            (Some(Parts::Leaf), Some(Parts::Leaf) | None) | (None, Some(Parts::Leaf) | None) => true,
            (Some(Parts::Items(list)), _) | (_, Some(Parts::Items(list))) => {
                let (old, new) = (items(old), items(new));
                if !(old.is_empty() && new.is_empty()) {
                    self.items(list, old, new)?;
                }
                old.is_empty() && new.is_empty()
            }
            (before, after) => {
                let (old, new) = (members(old), members(new));
                let mut form = Members::of(form);
                each_member(old, new, |key, old, new| self.member(&mut form, key, old, new))?;
                // A scalar replaced by an object counts as a changed value, and so does an object replaced by a scalar.
                matches!((before, after), (Some(Parts::Leaf), _) | (_, Some(Parts::Leaf)))
                    || (old.is_none() && new.is_none())
            }
        };
        match (old, new) {
            (None, _) => self.mark(Mark::Touched),
            (_, None) => self.mark(Mark::Removed),
            (Some(_), Some(_)) if leaf => self.mark(Mark::Touched),
            (Some(_), Some(_)) => {}
        }
        Ok(())
    }

    fn items(&mut self, list: &List, old: &[Value], new: &[Value]) -> Result<(), ItemError> {
        let form = Form::of_shape(&list.item);
        let (old, new) = (Items::index(list, old)?, Items::index(list, new)?);
        for element in new.identities() {
            self.item(form, element, old.all(element), new.all(element))?;
        }
        for element in old.identities().filter(|element| new.positions(element).is_empty()) {
            self.item(form, element, old.all(element), Vec::new())?;
        }
        Ok(())
    }

    /// Compares the items of one identity. Usually each side has one.
    fn item(&mut self, form: Form<'_>, element: &Str, old: Vec<&Value>, new: Vec<&Value>) -> Result<(), ItemError> {
        if old == new {
            return Ok(());
        }
        let mut change = Self::KEPT;
        match (&old[..], &new[..]) {
            ([_, _, ..], [_, _, ..]) => change.mark(Mark::Touched),
            ([_, _, ..], [one]) => {
                change.walk(form, None, Some(one))?;
                change.mark(Mark::Removed);
            }
            ([_, _, ..], []) => change.mark(Mark::Removed),
            ([one], [_, _, ..]) => {
                change.walk(form, Some(one), None)?;
                change.mark(Mark::Touched);
            }
            ([], [_, _, ..]) => change.mark(Mark::Touched),
            (old, new) => change.walk(form, old.first().copied(), new.first().copied())?,
        }
        self.push(element.clone(), change);
        Ok(())
    }

    /// Drops the changes at a path of member names and below it.
    pub fn forget(&mut self, path: &[&str]) {
        let Some((first, rest)) = path.split_first() else { return };
        if let Some(added) = &mut self.added {
            set::cut(added, path);
            if added.len() == 1 {
                added.remove(element::SELF);
            }
        }
        self.below.retain_mut(|(key, change)| {
            if element::name(key) != Some(first) {
                return true;
            }
            if rest.is_empty() {
                return false;
            }
            change.forget(rest);
            !change.is_none()
        });
    }

    /// Removes all changed elements from a set.
    pub fn take_from(&self, set: &mut Map) {
        if let Some(added) = &self.added {
            set::subtract(set, added);
        }
        for (key, change) in &self.below {
            let Some(node) = set.get_mut(key) else { continue };
            let member = set::is_member(node) && change.mark == Mark::Kept;
            let mut below = match node {
                Value::Object(map) => std::mem::take(map),
                _ => Map::new(),
            };
            change.take_from(&mut below);
            match set::node(member, below) {
                Some(rest) => *node = rest,
                None => {
                    set.remove(key);
                }
            }
        }
    }

    /// Returns the elements of a set that were added or have another value.
    pub fn touched_in(&self, set: &Map) -> Map {
        if let Some(added) = &self.added {
            return set::intersection(set, added);
        }
        let mut found = Vec::new();
        for (key, change) in &self.below {
            let Some(node) = set.get(key) else { continue };
            let below = match node {
                Value::Object(map) => change.touched_in(map),
                _ => Map::new(),
            };
            let member = set::is_member(node) && change.mark == Mark::Touched;
            found.extend(set::node(member, below).map(|node| (key.clone(), node)));
        }
        set::of_entries(found)
    }

    /// Returns all elements that were added or have another value.
    pub fn touched(self) -> Map {
        set::of_entries(self.touched_below())
    }

    fn touched_below(self) -> Vec<(Str, Value)> {
        let mut found = Vec::with_capacity(self.below.len());
        for (key, mut change) in self.below {
            if let Some(added) = change.added.take() {
                found.push((key, added.into()));
                continue;
            }
            let member = change.mark == Mark::Touched;
            found.extend(set::node_of(member, change.touched_below()).map(|node| (key, node)));
        }
        found
    }
}

/// The items of a list, indexed by identity.
struct Items<'v> {
    items: &'v [Value],
    elements: Vec<Str>,
    /// Positions in the order of the identities. Positions of the same identity are in the list's order.
    sorted: Vec<usize>,
    /// Whether every identity occurs once.
    distinct: bool,
}

impl<'v> Items<'v> {
    fn index(list: &List, items: &'v [Value]) -> Result<Self, ItemError> {
        let elements = items.iter().map(|item| element::of_item(list, item)).collect::<Result<Vec<_>, _>>()?;
        let mut sorted: Vec<usize> = (0..elements.len()).collect();
        sorted.sort_by_key(|&at| &elements[at]);
        let distinct = sorted.windows(2).all(|pair| elements[pair[0]] != elements[pair[1]]);
        Ok(Self { items, elements, sorted, distinct })
    }

    /// Returns the index in `sorted` at which the positions of an identity begin or would begin.
    fn first(&self, element: &Str) -> usize {
        self.sorted.partition_point(|&at| self.elements[at] < *element)
    }

    fn positions(&self, element: &Str) -> &[usize] {
        if self.distinct {
            let found = self.sorted.binary_search_by(|&at| self.elements[at].cmp(element));
            return found.map_or(&[], |at| &self.sorted[at..=at]);
        }
        let rest = &self.sorted[self.first(element)..];
        &rest[..rest.iter().take_while(|&&at| self.elements[at] == *element).count()]
    }

    /// Returns each identity once, in the order of the items that have it first.
    fn identities(&self) -> impl Iterator<Item = &Str> {
        let first = |(at, element): &(usize, &Str)| self.distinct || self.sorted[self.first(element)] == *at;
        self.elements.iter().enumerate().filter(first).map(|(_, element)| element)
    }

    fn all(&self, element: &Str) -> Vec<&'v Value> {
        self.positions(element).iter().map(|&at| &self.items[at]).collect()
    }
}
