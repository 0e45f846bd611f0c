//! The match conditions of a webhook in an AuthorizationConfiguration.

use flotilla_proto::value::Value;

use crate::access::webhook::conditions::compile;
use crate::field::{Errors, Path};
use crate::limits;

/// Reads conditions; adds an error for each that is wrong.
pub fn read(path: &Path<'_>, conditions: &[Value], errors: &mut Errors) -> Vec<String> {
    let path = path.child("matchConditions");
    if conditions.len() > limits::AUTHORIZER_CONDITIONS_MAX {
        errors.too_many(&path, conditions.len(), limits::AUTHORIZER_CONDITIONS_MAX);
        return Vec::new();
    }
    let mut texts: Vec<String> = Vec::new();
    for (at, condition) in conditions.iter().enumerate() {
        let (place, text) = (path.index(at), condition.str_at(&["expression"]));
        let place = place.child("expression");
        if text.trim().is_empty() {
            errors.required(&place, "");
        } else if texts.iter().any(|own| own == text) {
            errors.duplicate(&place, &text.into());
        } else {
            if let Err(why) = compile(text) {
                errors.invalid_str(&place, text, why);
            }
            texts.push(text.to_owned());
        }
    }
    texts
}
