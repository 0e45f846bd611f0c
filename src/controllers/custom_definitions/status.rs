//! Computes the status of a definition: its conditions, in the order in which they are added.

use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::naming::{TakenNames, decide, is_settled};
use crate::kinds::apiextensions::custom_resource_definition::approval::{self, Approval};
use crate::kinds::apiextensions::custom_resource_definition::ca_bundle;
use crate::rules::conditions::{is_true, set};

const ACCEPTED: [&str; 2] = ["status", "acceptedNames"];

/// A condition: type, status, reason, message.
type Condition<'a> = (&'a str, bool, &'a str, &'a str);

/// Returns whether a definition has exactly the names that it asks for, so that the names of others do not matter.
pub fn has_its_names(definition: &Value) -> bool {
    is_settled(definition.at(&["spec", "names"]), definition.at(&ACCEPTED))
}

/// Updates the status of a definition. `taken` are the names that definitions of its group have. If `taken` is `None`,
/// the definition keeps its names, even if it asks for others by now: that change causes another update.
pub fn renew(definition: &mut Value, taken: Option<&TakenNames>, now: &str) {
    if let Some(taken) = taken {
        accept_names(definition, taken, now);
    }
    establish(definition, now);
    judge_approval(definition, now);
}

fn tell(definition: &mut Value, (kind, status, reason, message): Condition<'_>, now: &str) {
    let status = if status { "True" } else { "False" };
    let condition =
        value!({"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message});
    set(definition, condition);
}

fn accept_names(definition: &mut Value, taken: &TakenNames, now: &str) {
    if has_its_names(definition) {
        return;
    }
    let (asked, accepted) = (definition.at(&["spec", "names"]), definition.at(&ACCEPTED));
    let (names, conflict) = decide(asked, accepted, taken);
    definition.set_at(&ACCEPTED, names);
    let Some((reason, message)) = conflict else {
        return tell(definition, ("NamesAccepted", true, "NoConflicts", "no conflicts found"), now);
    };
    tell(definition, ("NamesAccepted", false, reason, &message), now);
    let mut conditions = definition.list_at(&["status", "conditions"]).iter();
    if !conditions.any(|condition| condition.str_at(&["type"]) == "Established") {
        tell(definition, ("Established", false, "NotAccepted", "not all names are accepted"), now);
    }
}

/// Sets the condition `Established`, which a definition keeps even if its names change later.
fn establish(definition: &mut Value, now: &str) {
    if !is_true(definition, "NamesAccepted") || is_true(definition, "Established") {
        return;
    }
    let condition = match ca_bundle::fault(definition) {
        Some(_) => (false, "InvalidCABundle", "The conversion webhook CABundle is invalid"),
        None => (true, "InitialNamesAccepted", "the initial names have been accepted"),
    };
    tell(definition, ("Established", condition.0, condition.1, condition.2), now);
}

fn judge_approval(definition: &mut Value, now: &str) {
    if !approval::is_protected(definition) {
        return;
    }
    let (status, reason) = match approval::approval(definition) {
        Approval::Missing => (false, "MissingAnnotation"),
        Approval::Bypassed => (false, "UnapprovedAnnotation"),
        Approval::Given => (true, "ApprovedAnnotation"),
        Approval::Invalid => (false, "InvalidAnnotation"),
    };
    let message = approval::message(definition);
    tell(definition, ("KubernetesAPIApprovalPolicyConformant", status, reason, &message), now);
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2030-01-01T00:00:00Z";

    fn definition() -> Value {
        value!({
            "metadata": {"name": "cats.example.com"},
            "spec": {
                "group": "example.com",
                "names": {"plural": "cats", "singular": "cat", "kind": "Cat", "listKind": "CatList"}
            },
            "status": {"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]}
        })
    }

    fn conditions(definition: &Value) -> Vec<String> {
        let conditions = definition.list_at(&["status", "conditions"]).iter();
        let text = |condition: &Value| {
            ["type", "status", "reason"].map(|field| condition.str_at(&[field]).to_owned()).join(" ")
        };
        conditions.map(text).collect()
    }

    #[test]
    fn definitions_are_established_at_once() {
        let mut cats = definition();
        renew(&mut cats, Some(&TakenNames::default()), NOW);
        assert_eq!(cats.at(&ACCEPTED), cats.at(&["spec", "names"]));
        assert_eq!(conditions(&cats), ["NamesAccepted True NoConflicts", "Established True InitialNamesAccepted"]);
        let before = cats.clone();
        renew(&mut cats, Some(&TakenNames::default()), "2030-01-01T00:00:09Z");
        assert_eq!(cats, before, "conditions that are stated already are not changed");
    }

    #[test]
    fn no_names_are_given_without_those_of_the_group() {
        let mut cats = definition();
        renew(&mut cats, None, NOW);
        assert_eq!(cats, definition());
    }

    #[test]
    fn definitions_wait_for_names_and_keep_those_that_they_got() {
        let mut taken = TakenNames::default();
        taken.add(&value!({"plural": "lions", "kind": "Cat", "shortNames": ["ct"]}));
        let mut cats = definition();
        renew(&mut cats, Some(&taken), NOW);
        assert_eq!(conditions(&cats), ["NamesAccepted False KindConflict", "Established False NotAccepted"]);
        renew(&mut cats, Some(&TakenNames::default()), NOW);
        assert_eq!(conditions(&cats), ["NamesAccepted True NoConflicts", "Established True InitialNamesAccepted"]);
        cats.set_at(&["spec", "names", "shortNames"], value!(["ct"]));
        renew(&mut cats, Some(&taken), NOW);
        assert_eq!(
            conditions(&cats),
            ["NamesAccepted False ShortNamesConflict", "Established True InitialNamesAccepted"]
        );
    }

    #[test]
    fn conditions_report_approval_and_certificates() {
        let mut cats = definition();
        cats.set_at(&["spec", "group"], "cats.k8s.io");
        cats.set_at(&["metadata", "annotations"], value!({"api-approved.kubernetes.io": "unapproved, to try"}));
        cats.set_at(&["spec", "conversion"], value!({"webhook": {"clientConfig": {"caBundle": "AAAA"}}}));
        renew(&mut cats, Some(&TakenNames::default()), NOW);
        assert_eq!(
            conditions(&cats),
            [
                "NamesAccepted True NoConflicts",
                "Established False InvalidCABundle",
                "KubernetesAPIApprovalPolicyConformant False UnapprovedAnnotation"
            ]
        );
        let message = cats.list_at(&["status", "conditions"])[2].str_at(&["message"]);
        assert_eq!(message, "not approved: \"unapproved, to try\"");
    }
}
