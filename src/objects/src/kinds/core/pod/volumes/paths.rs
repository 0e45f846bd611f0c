//! Validation of paths inside volumes and containers.

use crate::field::{Errors, Path};

/// The message about wrong permission bits.
pub const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// Checks permission bits, unless they are absent.
pub fn mode(path: &Path<'_>, mode: Option<i64>, errors: &mut Errors) {
    if let Some(mode) = mode.filter(|mode| !(0..=0o777).contains(mode)) {
        errors.invalid(path, &mode.into(), FILE_MODE);
    }
}

/// Checks that no part of a path is `..`.
pub fn no_backsteps(path: &Path<'_>, target: &str, errors: &mut Errors) {
    if target.split('/').any(|part| part == "..") {
        errors.invalid_str(path, target, "must not contain '..'");
    }
}

/// Checks that a path is relative and has no part `..`.
pub fn descending(path: &Path<'_>, target: &str, errors: &mut Errors) {
    if target.starts_with('/') {
        errors.invalid_str(path, target, "must be a relative path");
    }
    no_backsteps(path, target, errors);
}

/// As [`descending`], for files that the kubelet writes: it reserves names that begin with `..`.
pub fn not_reserved(path: &Path<'_>, target: &str, errors: &mut Errors) {
    descending(path, target, errors);
    if target.starts_with("..") && !target.starts_with("../") {
        errors.invalid_str(path, target, "must not start with '..'");
    }
}
