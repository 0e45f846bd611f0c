//! DeviceClasses.

use flotilla_proto::value::Value;

use super::device;
use crate::field::{Errors, Path};
use crate::printing::{Printer, config};
use crate::rules::{Generation, NameRule, Strategy, metadata, resources, semantic};

/// Most configurations of a class.
const CONFIGURATIONS_MAX: usize = 32;

/// Rules of DeviceClasses.
pub static STRATEGY: Strategy = Strategy {
    name: NameRule::Subdomain,
    generation: Generation::Spec,
    returns_deleted: true,
    validate: |object, errors| validate(object, None, errors),
    validate_update: |object, old, errors| {
        metadata::validate_again(NameRule::Subdomain, false, object, errors);
        validate(object, Some(old), errors);
    },
    printer: Some(Printer::of(config::name_and_age)),
    ..Strategy::DEFAULT
};

fn validate(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let (path, spec) = (Path::root("spec"), object.at(&["spec"]));
    let stored = old.is_some_and(|old| semantic::equal_at(object, old, &["spec", "selectors"]));
    device::validate_selectors(spec.list_at(&["selectors"]), stored, &path.child("selectors"), errors);
    let stored = old.is_some_and(|old| semantic::equal_at(object, old, &["spec", "config"]));
    let config = spec.list_at(&["config"]);
    device::each(config, CONFIGURATIONS_MAX, &path.child("config"), errors, &mut |config, path, errors| {
        device::validate_configuration(config, stored, path, errors);
    });
    if let Some(name) = spec.at(&["extendedResourceName"]).as_str()
        && !resources::is_extended(name)
    {
        errors.invalid_str(&path.child("extendedResourceName"), name, "must be a valid extended resource name");
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn selectors_configurations_and_resource_names() {
        let class = value!({"spec": {
            "selectors": [{}, {"cel": {"expression": "true"}}],
            "config": [{}, {"opaque": {"driver": "d.example.com", "parameters": [1]}}],
            "extendedResourceName": "bad name"
        }});
        let mut errors = Errors::default();
        validate(&class, None, &mut errors);
        let fields: Vec<&str> = errors.0.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "spec.selectors[0].cel",
                "spec.config[0].opaque",
                "spec.config[1].opaque.parameters",
                "spec.extendedResourceName"
            ]
        );
    }
}
