//! ControllerRevisions (apps).

use flotilla_proto::json;
use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::printing::{Printer, workloads};
use crate::rules::{Generation, NameRule, Strategy, metadata, numbers};

/// Rules of ControllerRevisions.
pub static STRATEGY: Strategy = Strategy {
    generation: Generation::ClientOwned,
    validate,
    validate_update,
    printer: Some(Printer::of(workloads::controller_revision)),
    ..Strategy::DEFAULT
};

fn validate(revision: &Value, errors: &mut Errors) {
    numbers::not_negative(&Path::root("revision"), revision.at(&["revision"]), errors);
    let path = Path::root("data");
    let data = revision.at(&["data"]);
    if let Some(why) = data.hole().map(json::Error::from) {
        return errors.invalid_str(&path, "<value omitted>", format!("error parsing data: {why}"));
    }
    match data {
        Value::Null => errors.required(&path, "data is mandatory"),
        Value::Object(_) => {}
        _ => errors.required(&path, "data must be a valid JSON object"),
    }
}

fn validate_update(revision: &Value, old: &Value, errors: &mut Errors) {
    metadata::validate_again(NameRule::Subdomain, true, revision, errors);
    numbers::not_negative(&Path::root("revision"), revision.at(&["revision"]), errors);
    metadata::immutable(&Path::root("data"), revision.at(&["data"]), old.at(&["data"]), errors);
}
