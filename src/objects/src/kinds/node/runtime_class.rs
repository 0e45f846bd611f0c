//! RuntimeClasses (node.k8s.io).

use std::collections::HashSet;

use flotilla_proto::value::{Map, Value};

use crate::field::{ErrorKind, Errors, Path};
use crate::kinds::core::pod::resources::requirements;
use crate::kinds::core::pod::scheduling;
use crate::kinds::core::pod::spec::Options;
use crate::printing::{Printer, nodes};
use crate::rules::node_selector::deprecation;
use crate::rules::{Generation, NameRule, Strategy, labels, metadata, names, shown};

/// Rules of RuntimeClasses.
pub static STRATEGY: Strategy = Strategy {
    known_finalizers: false,
    generation: Generation::ClientOwned,
    create_on_update: true,
    unconditional_update: false,
    validate,
    validate_update,
    warnings: |class, _, into| warn(class, into),
    printer: Some(Printer::of(nodes::runtime_class)),
    ..Strategy::DEFAULT
};

fn validate(class: &Value, errors: &mut Errors) {
    let path = Path::root("handler");
    match class.str_at(&["handler"]) {
        "" => errors.required(&path, ""),
        handler => names::check(&path, handler, names::dns1123_label, errors),
    }
    let overhead = class.at(&["overhead"]);
    if !overhead.is_null() {
        let options = Options::default();
        requirements::validate_overhead(overhead.at(&["podFixed"]), &Path::root("overhead"), &options, errors);
    }
    let scheduling = class.at(&["scheduling"]);
    if !scheduling.is_null() {
        let path = Path::root("scheduling");
        labels::validate_labels(scheduling.at(&["nodeSelector"]), &path.child("nodeSelector"), errors);
        tolerations(scheduling.list_at(&["tolerations"]), &path.child("tolerations"), errors);
    }
}

fn tolerations(tolerations: &[Value], path: &Path<'_>, errors: &mut Errors) {
    scheduling::validate_tolerations(tolerations, path, errors);
    let mut seen = HashSet::new();
    for (n, toleration) in tolerations.iter().enumerate() {
        let key = ["key", "operator", "value", "effect"].map(|key| toleration.str_at(&[key]));
        if !seen.insert(key) {
            errors.push(ErrorKind::Duplicate, &path.index(n), shown::text("Toleration", toleration), "");
        }
    }
}

fn validate_update(class: &Value, old: &Value, errors: &mut Errors) {
    let repeated = metadata::take_repeated(class, old, errors);
    metadata::validate_again_generic(NameRule::Subdomain, false, class, errors);
    validate(class, errors);
    errors.append(repeated.0);
    metadata::immutable(&Path::root("handler"), class.at(&["handler"]), old.at(&["handler"]), errors);
}

fn warn(class: &Value, into: &mut Vec<String>) {
    for key in class.map_at(&["scheduling", "nodeSelector"]).into_iter().flat_map(Map::keys) {
        if let Some(why) = deprecation(key) {
            into.push(format!("scheduling.nodeSelector: {why}"));
        }
    }
}
