//! Reads the option that removes an object which cannot be decoded
//! (`ignoreStoreReadErrorWithClusterBreakingPotential`, KEP-3926).

use flotilla_proto::value::Value;

use crate::field::{Errors, Path};

/// The name of the option.
pub const OPTION: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";
/// Options that cannot be honoured for an object which cannot be decoded.
const OTHERS: [&str; 5] = ["dryRun", "propagationPolicy", "orphanDependents", "gracePeriodSeconds", "preconditions"];

/// Returns the errors about options that cannot be combined with [`OPTION`]. Returns `None` if [`OPTION`] is not set.
pub fn read(options: &Value) -> Option<Errors> {
    options.is_true_at(&[OPTION]).then(|| {
        let mut errors = Errors::default();
        for other in OTHERS {
            let stated = options.at(&[other]);
            if !stated.is_null() && stated.as_array().is_none_or(|list| !list.is_empty()) {
                let why = format!("cannot be set together with .{other}");
                errors.invalid(&Path::root(OPTION), &true.into(), why);
            }
        }
        errors
    })
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    #[test]
    fn unsafe_deletion_excludes_other_options() {
        assert_eq!(read(&value!({"gracePeriodSeconds": 0})), None);
        assert_eq!(read(&value!({OPTION: false, "dryRun": ["All"]})), None);
        assert!(read(&value!({OPTION: true, "dryRun": []})).is_some_and(|errors| errors.is_empty()));
        let all = value!({
            OPTION: true, "dryRun": ["All"], "propagationPolicy": "Orphan", "orphanDependents": false,
            "gracePeriodSeconds": 0, "preconditions": {}
        });
        let errors = read(&all).unwrap_or_default();
        let details: Vec<&str> = errors.0.iter().map(|error| error.detail.rsplit(' ').next().unwrap_or("")).collect();
        assert_eq!(
            details,
            [".dryRun", ".propagationPolicy", ".orphanDependents", ".gracePeriodSeconds", ".preconditions"]
        );
    }
}
