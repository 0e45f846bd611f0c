//! PodTemplates (core).

use flotilla_proto::value::Value;

use super::pod::spec::Options;
use super::pod::{defaults, dropped, template, warnings};
use crate::field::{Errors, Path};
use crate::kinds::templates;
use crate::printing::{Printer, pods};
use crate::rules::{Generation, Strategy, semantic};

/// Rules of PodTemplates.
pub static STRATEGY: Strategy = Strategy {
    generation: Generation::Own,
    returns_deleted: true,
    default,
    prepare_create: |object, _| dropped::drop_from_spec(object, None, &["template", "spec"]),
    prepare_update: |object, old, _| prepare_update(object, old),
    validate: |object, errors| {
        validate(object, None, errors);
    },
    validate_update: |object, old, errors| validate(object, Some(old), errors),
    warnings: warn,
    printer: Some(Printer::of(pods::pod_template)),
    ..Strategy::DEFAULT
};

fn default(object: &mut Value) {
    if let Some(object) = object.as_object_mut() {
        defaults::template(object.entry("template"));
    }
}

fn prepare_update(object: &mut Value, old: &Value) {
    dropped::drop_from_spec(object, Some(old), &["template", "spec"]);
    let changed = !semantic::equal_at(object, old, &["template"]);
    templates::set_generation(object, old, changed);
}

fn validate(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let template = object.at(&["template"]);
    let options = Options::of_template(old.map(|old| old.at(&["template"])));
    template::validate(template, &Path::root("template"), &options, errors);
}

fn warn(object: &Value, old: Option<&Value>, into: &mut Vec<String>) {
    if templates::is_new_generation(object, old) {
        warnings::of_template(object.at(&["template"]), &Path::root("template"), into);
    }
}
