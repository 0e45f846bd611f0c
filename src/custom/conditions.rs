//! Conditions in the status of a definition.

use flotilla_proto::value;
use flotilla_proto::value::Value;

/// A condition: its type, whether it holds, and why.
#[derive(Debug, Clone, Copy)]
pub struct Condition<'a> {
    /// Its type.
    pub kind: &'a str,
    /// Whether it holds.
    pub status: bool,
    /// Why, in one word.
    pub reason: &'a str,
    /// Why, in a sentence.
    pub message: &'a str,
}

/// Whether a condition holds.
pub fn is_true(definition: &Value, kind: &str) -> bool {
    let conditions = definition.list_at(&["status", "conditions"]).iter();
    let mut own = conditions.filter(|one| one.str_at(&["type"]) == kind);
    own.any(|one| one.str_at(&["status"]) == "True")
}

/// Writes a condition into a status. The time of its transition stays where it holds as it did.
pub fn set(definition: &mut Value, Condition { kind, status, reason, message }: Condition<'_>, now: &str) {
    let status = if status { "True" } else { "False" };
    let mut all = definition.list_at(&["status", "conditions"]).to_vec();
    let known = all.iter().position(|one| one.str_at(&["type"]) == kind);
    let since = known.filter(|at| all[*at].str_at(&["status"]) == status);
    let since = since.map_or(now, |at| all[at].str_at(&["lastTransitionTime"])).to_owned();
    let condition = value!({
        "type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message
    });
    match known {
        Some(at) => all[at] = condition,
        None => all.push(condition),
    }
    definition.set_at(&["status", "conditions"], all);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_transitions() {
        let mut definition = Value::object();
        let condition = |status, reason| Condition { kind: "Established", status, reason, message: "m" };
        set(&mut definition, condition(true, "A"), "t1");
        set(&mut definition, condition(true, "B"), "t2");
        let shown = |definition: &Value| {
            let one = &definition.list_at(&["status", "conditions"])[0];
            format!("{} {}", one.str_at(&["reason"]), one.str_at(&["lastTransitionTime"]))
        };
        assert_eq!(shown(&definition), "B t1");
        assert!(is_true(&definition, "Established") && !is_true(&definition, "Terminating"));
        set(&mut definition, condition(false, "C"), "t3");
        assert_eq!((shown(&definition).as_str(), is_true(&definition, "Established")), ("C t3", false));
    }
}
