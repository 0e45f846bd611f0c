//! LeaseCandidates: who could hold a lease (KEP-4355).

use flotilla_golang::semver::SemanticVersion;
use flotilla_proto::value::Value;

use crate::field::{Errors, Path};
use crate::printing::{Printer, config};
use crate::rules::{Generation, NameRule, Strategy, metadata, names};

/// The one strategy that Kubernetes itself defines.
const OLDEST: &str = "OldestEmulationVersion";
const NO_VERSION: &str = "must be a valid semantic version";

/// Rules of LeaseCandidates.
pub static STRATEGY: Strategy = Strategy {
    name: NameRule::Own,
    generation: Generation::ClientOwned,
    create_on_update: true,
    unconditional_update: false,
    validate: |candidate, errors| {
        names::check(
            &Path::root("metadata.name"),
            candidate.str_at(&["metadata", "name"]),
            names::config_map_key,
            errors,
        );
        validate(candidate.at(&["spec"]), errors);
    },
    validate_update: |candidate, old, errors| {
        validate(candidate.at(&["spec"]), errors);
        let lease = ["spec", "leaseName"];
        metadata::immutable(&Path::root("spec.leaseName"), candidate.at(&lease), old.at(&lease), errors);
    },
    printer: Some(Printer::of(config::lease_candidate)),
    ..Strategy::DEFAULT
};

fn validate(spec: &Value, errors: &mut Errors) {
    let path = Path::root("spec");
    if spec.str_at(&["leaseName"]).is_empty() {
        errors.required(&path.child("leaseName"), "");
    }
    let (binary, emulated) = (spec.str_at(&["binaryVersion"]), spec.str_at(&["emulationVersion"]));
    let emulation = if emulated.is_empty() { None } else { version(&path.child("emulationVersion"), emulated, errors) };
    let emulation = emulation.unwrap_or_default();
    let binary_path = path.child("binaryVersion");
    if binary.is_empty() {
        errors.required(&binary_path, "");
    } else {
        let version = version(&binary_path, binary, errors).unwrap_or_default();
        if !emulated.is_empty() && version.precedence(&emulation).is_lt() {
            errors.invalid_str(&binary_path, binary, "must be greater than or equal to `emulationVersion`");
        }
    }
    match spec.str_at(&["strategy"]) {
        "" => errors.required(&path.child("strategy"), ""),
        strategy => {
            if strategy == OLDEST && emulation.precedence(&SemanticVersion::default()).is_eq() {
                let why = "must be specified when `strategy` is 'OldestEmulationVersion'";
                errors.required(&path.child("emulationVersion"), why);
            }
            validate_strategy(strategy, &path.child("strategy"), errors);
        }
    }
}

fn version(path: &Path<'_>, text: &str, errors: &mut Errors) -> Option<SemanticVersion> {
    let version = text.parse().ok();
    if version.is_none() {
        errors.invalid_str(path, text, NO_VERSION);
    }
    version
}

/// Checks a strategy: one of Kubernetes, or one of another project, whose name has a domain.
fn validate_strategy(strategy: &str, path: &Path<'_>, errors: &mut Errors) {
    // The reference names the field twice.
    let path = path.child("strategy");
    if strategy.contains('/') {
        names::check(&path, strategy, names::qualified_name, errors);
    } else {
        names::check_choice(&path, strategy, &[OLDEST], errors);
    }
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn faults(spec: Value) -> Vec<String> {
        let mut errors = Errors::default();
        validate(&spec, &mut errors);
        errors.0.iter().map(|error| error.field.to_string()).collect()
    }

    #[test]
    fn versions_are_semantic_and_in_order() {
        let spec = |binary: &str, emulated: &str| {
            faults(value!({
                "leaseName": "l", "binaryVersion": binary, "emulationVersion": emulated, "strategy": OLDEST
            }))
        };
        assert_eq!(spec("1.2.3", "1.2.0"), [""; 0]);
        assert_eq!(spec("1.2.3-alpha.1+b", "1.2.3-alpha.0"), [""; 0]);
        assert_eq!(spec("1.2.3-alpha.1", "1.2.3"), ["spec.binaryVersion"]);
        assert_eq!(spec("v1.2.3", "1.2.0"), ["spec.binaryVersion", "spec.binaryVersion"]);
        assert_eq!(spec("1.2.3", "0.0.0"), ["spec.emulationVersion"]);
        assert_eq!(spec("1.2.3", "1.0"), ["spec.emulationVersion", "spec.emulationVersion"]);
    }

    #[test]
    fn strategies_of_others_have_a_domain() {
        let spec = |strategy: &str| faults(value!({"leaseName": "l", "binaryVersion": "1.0.0", "strategy": strategy}));
        assert_eq!(spec("example.com/mine"), [""; 0]);
        assert_eq!(spec("mine"), ["spec.strategy.strategy"]);
        assert_eq!(spec("a/b/c"), ["spec.strategy.strategy"]);
        assert_eq!(spec(""), ["spec.strategy"]);
    }
}
