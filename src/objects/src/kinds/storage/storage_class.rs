//! StorageClasses, VolumeAttributesClasses and CSIStorageCapacities.

use flotilla_proto::value::{Map, Value};

use crate::field::{ErrorKind, Errors, Path};
use crate::printing::{PLAIN, Printer, storage};
use crate::rules::{Generation, NameRule, Strategy, labels, metadata, names, protection, resources};

const PARAMETERS_MAX: usize = 512;
const PARAMETER_BYTES_MAX: usize = 256 << 10;
const MODES: [&str; 2] = ["Immediate", "WaitForFirstConsumer"];

/// Rules of StorageClasses.
pub static STRATEGY: Strategy = Strategy {
    name: NameRule::Subdomain,
    generation: Generation::ClientOwned,
    returns_deleted: true,
    default: |object| {
        for (field, value) in [("reclaimPolicy", "Delete"), ("volumeBindingMode", "Immediate")] {
            if object.at(&[field]).is_null() {
                object.set_at(&[field], value);
            }
        }
    },
    validate,
    validate_update: |object, old, errors| {
        metadata::validate_again(NameRule::Subdomain, false, object, errors);
        validate(object, errors);
        for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            metadata::immutable(&Path::root(field), object.at(&[field]), old.at(&[field]), errors);
        }
    },
    warnings: warn_topologies,
    printer: Some(Printer::of(storage::storage_class)),
    ..Strategy::DEFAULT
};

/// Rules of VolumeAttributesClasses.
pub static ATTRIBUTES: Strategy = Strategy {
    name: NameRule::Subdomain,
    generation: Generation::ClientOwned,
    returns_deleted: true,
    prepare_create: |object, _| protection::add_finalizer(object, protection::CLASSES.finalizer),
    validate: validate_attributes,
    validate_update: |object, old, errors| {
        for field in ["driverName", "parameters"] {
            if object.at(&[field]) != old.at(&[field]) {
                errors.forbidden(&Path::root(field), format!("updates to {field} are forbidden."));
            }
        }
        metadata::validate_again(NameRule::Subdomain, false, object, errors);
        validate_attributes(object, errors);
    },
    protection: Some(&protection::CLASSES),
    printer: Some(Printer::of(storage::attributes_class)),
    ..Strategy::DEFAULT
};

/// Rules of CSIStorageCapacities.
pub static CAPACITY: Strategy = Strategy {
    name: NameRule::Subdomain,
    unconditional_update: false,
    generation: Generation::ClientOwned,
    validate: |object, errors| validate_capacity(object, false, errors),
    validate_update: |object, old, errors| {
        metadata::validate_again(NameRule::Subdomain, true, object, errors);
        let odd = labels::has_impossible_value(old.at(&["nodeTopology"]));
        validate_capacity(object, odd, errors);
        for field in ["nodeTopology", "storageClassName"] {
            metadata::immutable(&Path::root(field), object.at(&[field]), old.at(&[field]), errors);
        }
    },
    printer: Some(PLAIN),
    ..Strategy::DEFAULT
};

fn validate(object: &Value, errors: &mut Errors) {
    validate_provisioner(object.str_at(&["provisioner"]), &Path::root("provisioner"), errors);
    validate_parameters(object.map_at(&["parameters"]), true, errors);
    let policy = object.str_at(&["reclaimPolicy"]);
    if !matches!(policy, "" | "Delete" | "Retain") {
        errors.not_supported(&Path::root("reclaimPolicy"), policy, &["Delete", "Retain"]);
    }
    let path = Path::root("volumeBindingMode");
    match object.at(&["volumeBindingMode"]).as_str() {
        None => errors.required(&path, ""),
        Some(mode) if !MODES.contains(&mode) => errors.not_supported(&path, mode, &MODES),
        Some(_) => {}
    }
    validate_topologies(object.list_at(&["allowedTopologies"]), errors);
}

fn validate_provisioner(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.required(path, "");
        return;
    }
    let name = name.to_lowercase();
    names::check(path, &name, names::qualified_name, errors);
}

fn validate_parameters(parameters: Option<&Map>, may_be_empty: bool, errors: &mut Errors) {
    let path = Path::root("parameters");
    let count = parameters.map_or(0, Map::len);
    if count > PARAMETERS_MAX {
        errors.too_long(&path, PARAMETERS_MAX);
        return;
    }
    let mut total = 0;
    for (key, value) in parameters.into_iter().flat_map(Map::iter) {
        if key.is_empty() {
            errors.invalid_str(&path, key, "field can not be empty.");
        }
        total += key.len() + value.as_str().map_or(0, str::len);
    }
    if total > PARAMETER_BYTES_MAX {
        errors.too_long(&path, PARAMETER_BYTES_MAX);
    }
    if !may_be_empty && count == 0 {
        errors.required(&path, "must contain at least one key/value pair");
    }
}

fn validate_topologies(terms: &[Value], errors: &mut Errors) {
    let path = Path::root("allowedTopologies");
    for (index, term) in terms.iter().enumerate() {
        let place = path.index(index);
        let place = place.child("matchLabelExpressions");
        let expressions = term.list_at(&["matchLabelExpressions"]);
        for (index, expression) in expressions.iter().enumerate() {
            let place = place.index(index);
            let values = expression.list_at(&["values"]);
            if values.is_empty() {
                errors.required(&place.child("values"), "");
            }
            for (index, value) in values.iter().enumerate().filter(|(index, value)| values[..*index].contains(value)) {
                errors.duplicate(&place.child("values").index(index), value);
            }
            let key = expression.str_at(&["key"]);
            labels::validate_label_key(key, &place.child("key"), errors);
            if expressions[..index].iter().any(|other| other.str_at(&["key"]) == key) {
                errors.duplicate(&place.child("key"), &key.into());
            }
        }
        // The reference compares a term also with as many empty ones as there are terms.
        let empty = if expressions.is_empty() { terms.len() } else { 0 };
        let same = terms[..index].iter().filter(|other| same_topology(term, other)).count();
        for _ in 0..empty + same {
            errors.push(ErrorKind::Duplicate, &place, "\"\"", "");
        }
    }
}

/// Returns whether two terms select the same topology, in any order of their parts.
fn same_topology(a: &Value, b: &Value) -> bool {
    let sorted = |term: &Value| {
        let mut keys: Vec<(String, Vec<String>)> = term
            .list_at(&["matchLabelExpressions"])
            .iter()
            .map(|expression| {
                let values = expression.list_at(&["values"]).iter().filter_map(Value::as_str);
                let mut values: Vec<String> = values.map(str::to_owned).collect();
                values.sort();
                (expression.str_at(&["key"]).to_owned(), values)
            })
            .collect();
        keys.sort();
        keys
    };
    sorted(a) == sorted(b)
}

fn warn_topologies(object: &Value, _old: Option<&Value>, warnings: &mut Vec<String>) {
    let path = Path::root("allowedTopologies");
    for (index, term) in object.list_at(&["allowedTopologies"]).iter().enumerate() {
        let path = path.index(index);
        let path = path.child("matchLabelExpressions");
        for (index, expression) in term.list_at(&["matchLabelExpressions"]).iter().enumerate() {
            if let Some(why) = crate::rules::node_selector::deprecation(expression.str_at(&["key"])) {
                let path = path.index(index);
                warnings.push(format!("{}: {why}", path.child("key")));
            }
        }
    }
}

fn validate_attributes(object: &Value, errors: &mut Errors) {
    validate_provisioner(object.str_at(&["driverName"]), &Path::root("driverName"), errors);
    validate_parameters(object.map_at(&["parameters"]), false, errors);
}

fn validate_capacity(object: &Value, any_value: bool, errors: &mut Errors) {
    let options = labels::SelectorOptions { any_value, any_operator: false };
    labels::validate_selector(object.at(&["nodeTopology"]), options, &Path::root("nodeTopology"), errors);
    let class = object.str_at(&["storageClassName"]);
    names::check(&Path::root("storageClassName"), class, names::dns1123_subdomain, errors);
    let capacity = object.at(&["capacity"]);
    if !capacity.is_null() {
        resources::check_not_negative(&Path::root("capacity"), capacity, errors);
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn classes_are_checked() {
        let expression = value!({"key": "zone", "values": ["a", "a"]});
        let mut object = value!({"provisioner": "Example.com/x", "allowedTopologies":
            [{"matchLabelExpressions": [(expression.clone())]}, {"matchLabelExpressions": [expression]}]});
        (STRATEGY.default)(&mut object);
        let mut errors = Errors::default();
        validate(&object, &mut errors);
        let fields: Vec<&str> = errors.0.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "allowedTopologies[0].matchLabelExpressions[0].values[1]",
                "allowedTopologies[1].matchLabelExpressions[0].values[1]",
                "allowedTopologies[1].matchLabelExpressions"
            ]
        );
    }

    #[test]
    fn an_empty_topology_repeats_one_for_each_topology() {
        let mut errors = Errors::default();
        validate_topologies(&[value!({}), value!({})], &mut errors);
        let count = |path: &str| errors.0.iter().filter(|error| error.field == path).count();
        assert_eq!(count("allowedTopologies[0].matchLabelExpressions"), 2);
        assert_eq!(count("allowedTopologies[1].matchLabelExpressions"), 3);
    }
}
