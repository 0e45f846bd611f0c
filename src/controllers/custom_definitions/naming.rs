//! Decides which names a definition gets: those that no other definition of its group has.

use std::collections::HashSet;
use std::slice;

use flotilla_proto::value::Value;

use crate::field::quote;

/// The names that the definitions of a group have.
#[derive(Debug, Default)]
pub struct TakenNames {
    resources: HashSet<String>,
    kinds: HashSet<String>,
}

impl TakenNames {
    /// Adds the accepted names of a definition.
    pub fn add(&mut self, accepted: &Value) {
        let one = |field: &str| Some(accepted.str_at(&[field])).filter(|name| !name.is_empty()).map(str::to_owned);
        let short = accepted.list_at(&["shortNames"]).iter().filter_map(Value::as_str).map(str::to_owned);
        self.resources.extend(["plural", "singular"].into_iter().filter_map(one).chain(short));
        self.kinds.extend(["kind", "listKind"].into_iter().filter_map(one));
    }
}

/// The reason why a definition did not get all names that it asks for: reason and message.
pub type Conflict = (&'static str, String);

/// Returns whether a definition has exactly the names that it asks for.
pub fn is_settled(asked: &Value, accepted: &Value) -> bool {
    let texts = ["plural", "singular", "kind", "listKind"];
    let lists = ["shortNames", "categories"];
    texts.iter().all(|field| asked.str_at(&[field]) == accepted.str_at(&[field]))
        && lists.iter().all(|field| asked.list_at(&[field]) == accepted.list_at(&[field]))
}

/// The names in the order in which they are decided, with the reason of a conflict about each.
const FIELDS: [(&str, &str); 5] = [
    ("plural", "PluralConflict"),
    ("singular", "SingularConflict"),
    ("shortNames", "ShortNamesConflict"),
    ("kind", "KindConflict"),
    ("listKind", "ListKindConflict"),
];

/// Returns the names that a definition gets: each requested name if it is free, otherwise the former name. Also returns
/// the last conflict. `None` if there is no conflict.
pub fn decide(asked: &Value, accepted: &Value, taken: &TakenNames) -> (Value, Option<Conflict>) {
    let (mut names, mut conflict) = (accepted.clone(), None);
    for (field, reason) in FIELDS {
        let used = if matches!(field, "kind" | "listKind") { &taken.kinds } else { &taken.resources };
        match &clashes(asked.at(&[field]), accepted.at(&[field]), used)[..] {
            [] => take(&mut names, asked, field),
            [one] => conflict = Some((reason, one.clone())),
            several => conflict = Some((reason, format!("[{}]", several.join(", ")))),
        }
    }
    take(&mut names, asked, "categories");
    (names, conflict)
}

/// Returns a message for each name that another definition has.
fn clashes(asked: &Value, accepted: &Value, used: &HashSet<String>) -> Vec<String> {
    let own = all(accepted);
    let mut clashes = Vec::new();
    for name in all(asked).iter().filter(|name| !own.contains(name)).filter_map(Value::as_str) {
        let clash = format!("{} is already in use", quote(name));
        if used.contains(name) && !clashes.contains(&clash) {
            clashes.push(clash);
        }
    }
    clashes
}

/// Returns the names in a field, which holds one name or a list.
fn all(names: &Value) -> &[Value] {
    names.as_array().unwrap_or(slice::from_ref(names))
}

fn take(names: &mut Value, asked: &Value, field: &str) {
    match asked.at(&[field]) {
        Value::Null => drop(names.remove_at(&[field])),
        name => names.set_at(&[field], name.clone()),
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn cats() -> TakenNames {
        let mut taken = TakenNames::default();
        let names = value!({"plural": "cats", "singular": "cat", "kind": "Cat", "listKind": "CatList",
            "shortNames": ["ct", "meow"]});
        taken.add(&names);
        taken
    }

    fn asked(field: &str, value: Value) -> Value {
        let mut names = value!({"plural": "kittens", "singular": "kitten", "kind": "Kitten", "listKind": "KittenList"});
        names.set_at(&[field], value);
        names
    }

    #[test]
    fn names_of_other_definitions_are_not_given() {
        let none = value!({"plural": "", "kind": ""});
        let cases = [
            ("plural", value!("cat"), "PluralConflict", "\"cat\" is already in use"),
            ("singular", value!("cat"), "SingularConflict", "\"cat\" is already in use"),
            ("kind", value!("Cat"), "KindConflict", "\"Cat\" is already in use"),
            ("listKind", value!("Cat"), "ListKindConflict", "\"Cat\" is already in use"),
            ("shortNames", value!(["ct", "kt"]), "ShortNamesConflict", "\"ct\" is already in use"),
            (
                "shortNames",
                value!(["ct", "cats", "ct"]),
                "ShortNamesConflict",
                "[\"ct\" is already in use, \"cats\" is already in use]",
            ),
        ];
        for (field, name, reason, message) in cases {
            let asked = asked(field, name);
            let (names, conflict) = decide(&asked, &none, &cats());
            assert_eq!(conflict, Some((reason, message.to_owned())));
            assert_eq!(names.at(&[field]), none.at(&[field]), "what is in use is not given");
            assert!(!is_settled(&asked, &names));
        }
    }

    #[test]
    fn free_names_are_given_and_former_names_stay() {
        let had = value!({"plural": "kittens", "kind": "Kitten", "shortNames": ["kt"], "categories": ["old"]});
        let asked = asked("shortNames", value!(["ct"]));
        let (names, conflict) = decide(&asked, &had, &cats());
        assert_eq!(conflict.map(|(reason, _)| reason), Some("ShortNamesConflict"));
        assert_eq!(names.at(&["shortNames"]), &value!(["kt"]));
        assert_eq!(names.str_at(&["listKind"]), "KittenList");
        assert!(names.at(&["categories"]).is_null());
        let (names, conflict) = decide(&asked, &had, &TakenNames::default());
        assert_eq!(conflict, None);
        assert!(is_settled(&asked, &names));
    }
}
