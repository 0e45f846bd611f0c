//! Kubernetes' answers to schemas with rules, and to objects of them. The errors about a definition are not compared if
//! it is refused for more than its rules.

use flotilla_cel::schema::definition::Judgement;
use flotilla_cel::schema::field_path::normalize;
use flotilla_cel::schema::limits::OBJECT_COST;
use flotilla_cel::schema::structural::Schema;
use flotilla_cel::schema::{Findings, ValidatedObject, Validator, Violation, definition};
use flotilla_proto::structural::Structural;
use flotilla_proto::value::{Float, Value as Tree};
use serde_json::Value as Json;

/// Where the schema stands in a definition.
const PATH: &str = "spec.validation.openAPIV3Schema";

fn tree(json: &Json) -> Tree {
    match json {
        Json::Null => Tree::Null,
        Json::Bool(truth) => Tree::Bool(*truth),
        Json::Number(number) => {
            let float = || number.as_f64().and_then(Float::new).map_or(Tree::Null, Tree::Float);
            number.as_i64().map_or_else(float, Tree::Int)
        }
        Json::String(text) => Tree::Str(text.as_str().into()),
        Json::Array(items) => Tree::Array(items.iter().map(tree).collect()),
        Json::Object(members) => {
            let mut object = Tree::object();
            for (name, member) in members {
                object.set_at(&[name], tree(member));
            }
            object
        }
    }
}

/// Removes the meaningless number from the name of the type of `self`.
fn masked(text: &str) -> String {
    text.replace("selfType0", "selfType")
}

fn texts(violations: &[Violation]) -> Vec<String> {
    let mut texts: Vec<_> = violations.iter().map(|violation| masked(&violation.to_string())).collect();
    texts.sort();
    texts
}

fn wanted(list: &Json) -> Vec<String> {
    let text = |error: &Json| error["text"].as_str().or(error.as_str()).unwrap_or_default().to_owned();
    let mut texts: Vec<_> = list.as_array().into_iter().flatten().map(text).collect();
    texts.sort();
    texts
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, wanted: &T, found: &T) -> Result<(), String> {
    if wanted == found { Ok(()) } else { Err(format!("{what} is {found:?}, wanted {wanted:?}")) }
}

fn compare(what: &str, answer: &Json, found: &Findings) -> Result<(), String> {
    same(&format!("{what} errors"), &wanted(&answer["errors"]), &texts(&found.errors))?;
    same(&format!("{what} warnings"), &wanted(&answer["warnings"]), &texts(&found.warnings))?;
    let remaining = answer["remaining"].as_str().unwrap_or_default();
    same(&format!("{what} remaining"), &remaining.to_owned(), &found.remaining.to_string())
}

/// Returns whether an error is about rules and not about the schema's form, which is checked elsewhere.
fn is_of_rules(text: &str) -> bool {
    text.contains("x-kubernetes-validations") && !text.contains("must be empty to be structural")
}

/// Collects the faults in the form of the rules of a schema and of those below it.
fn forms(schema: &Schema, path: &str, found: &mut Vec<Violation>) {
    for (index, rule) in schema.rules.iter().enumerate() {
        let is_path = |path: &str| normalize(path, schema).is_ok();
        found.extend(definition::form(rule, &format!("{path}.x-kubernetes-validations[{index}]"), &is_path));
    }
    for (name, property) in &schema.properties {
        forms(property, &format!("{path}.properties[{name}]"), found);
    }
    for (below, name) in [(&schema.items, "items"), (&schema.additional, "additionalProperties")] {
        below.iter().for_each(|below| forms(below, &format!("{path}.{name}"), found));
    }
}

/// Checks a case. The error names the difference.
pub fn check(case: &Json) -> Result<(), String> {
    let answer = &case["answer"];
    let schema = Schema::of(&tree(&case["schema"]));
    let mut errors = Vec::new();
    forms(&schema, PATH, &mut errors);
    let mut faults: Vec<String> = errors.iter().map(|error| error.field.clone()).collect();
    faults.sort();
    let judgement = Judgement { faults: &faults, ..Judgement::default() };
    let (found, _) = definition::check(&schema, PATH, judgement);
    // The recorded cost is that of all rules that compile, even of those that are not checked.
    let (_, total) = definition::check(&schema, PATH, Judgement::default());
    errors.extend(found);
    let mut expected = wanted(&answer["crdErrors"]);
    let is_formed = expected.iter().all(|text| is_of_rules(text));
    if is_formed {
        expected.retain(|text| is_of_rules(text));
        same("errors", &expected, &texts(&errors))?;
        same("total", &answer["totalCost"].as_str().unwrap_or_default().to_owned(), &total.to_string())?;
    }
    let Some(validate) = answer.get("validate") else { return Ok(()) };
    let (object, old) = (tree(&case["object"]), case.get("old").map(tree));
    let budget = i64::try_from(OBJECT_COST).unwrap();
    let nothing = || Findings::within(budget);
    let validator = Validator::new(&schema);
    let structural = Structural::of(&tree(&case["schema"]));
    let subject = ValidatedObject { schema: &structural, new: &object, old: old.as_ref(), at: "" };
    let found = validator.as_ref().map_or_else(nothing, |each| each.validate(subject, budget));
    compare("validate", validate, &found)?;
    if let (Some(ratcheting), Some(_)) = (answer.get("ratcheting"), &old) {
        let found = validator.as_ref().map_or_else(nothing, |each| each.validate_change(subject, budget));
        compare("ratcheting", ratcheting, &found)?;
    }
    Ok(())
}
