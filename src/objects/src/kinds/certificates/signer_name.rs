//! Names of signers.

use crate::field::{Errors, Path, quote};
use crate::rules::names;

const SIGNER_BYTES_MAX: usize = 571;

/// Checks the name of a signer: a path below a domain.
pub(super) fn validate_signer(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.required(path, "");
        return;
    }
    let Some((domain, tail)) = name.split_once('/').filter(|(_, tail)| !tail.contains('/')) else {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.invalid_str(path, name, why);
        return;
    };
    if domain.len() > names::SUBDOMAIN_BYTES_MAX {
        errors.too_long(path, names::SUBDOMAIN_BYTES_MAX);
    }
    // Stops at the first wrong label: the messages about further ones would be the same.
    let check = |part: &str, form: names::Form, errors: &mut Errors| {
        if let Some(label) = part.split('.').find(|label| !form(label).is_empty()) {
            for message in form(label) {
                errors.invalid_str(path, part, format!("validating label {}: {message}", quote(label)));
            }
        }
    };
    check(domain, names::dns1123_label, errors);
    if !domain.contains('.') {
        errors.invalid_str(path, domain, "should be a domain with at least two segments separated by dots");
    }
    check(tail, names::dns1123_subdomain, errors);
    if name.len() > SIGNER_BYTES_MAX {
        errors.too_long(path, SIGNER_BYTES_MAX);
    }
}
