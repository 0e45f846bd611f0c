//! Validation of projected volumes, and of files with fields of the pod (downward API).

use std::collections::HashSet;

use flotilla_proto::value::Value;

use super::{key_to_path, paths, required};
use crate::field::{Errors, Path};
use crate::kinds::core::pod::containers::env;
use crate::kinds::core::pod::spec::Options;

/// Shortest life of a token, in seconds.
const TOKEN_SECONDS_MIN: i64 = 600;
/// Longest life of a token, in seconds.
const TOKEN_SECONDS_MAX: i64 = 1 << 32;
const CONFLICT: &str = "conflicting duplicate paths";

/// Checks a `downwardAPI` volume; errors of its files name the volume.
pub fn validate_downward(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    paths::mode(&path.child("defaultMode"), source.int_at(&["defaultMode"]), errors);
    for file in source.list_at(&["items"]) {
        downward_file(file, path, errors);
    }
}

fn downward_file(file: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(file, &["path"], path, errors);
    paths::not_reserved(&path.child("path"), file.str_at(&["path"]), errors);
    let (field, resource) = (file.at(&["fieldRef"]), file.at(&["resourceFieldRef"]));
    if !field.is_null() {
        env::field_selector(field, &env::FILE_FIELDS, &path.child("fieldRef"), errors);
        if !resource.is_null() {
            let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.invalid_str(path, "resource", why);
        }
    } else if !resource.is_null() {
        env::resource_selector(resource, &path.child("resourceFieldRef"), true, errors);
    } else {
        errors.required(path, "one of fieldRef and resourceFieldRef is required");
    }
    paths::mode(&path.child("mode"), file.int_at(&["mode"]), errors);
}

/// Checks a `projected` volume. Sources that belong to features that are off were dropped before.
pub fn validate(projected: &Value, path: &Path<'_>, options: &Options, errors: &mut Errors) {
    paths::mode(&path.child("defaultMode"), projected.int_at(&["defaultMode"]), errors);
    let list = path.child("sources");
    let mut seen = HashSet::new();
    for (n, source) in projected.list_at(&["sources"]).iter().enumerate() {
        let item = list.index(n);
        let mut count = 0;
        for key in ["secret", "configMap"] {
            let keyed = source.at(&[key]);
            if !keyed.is_null() {
                count += 1;
                keys(keyed, path, &item.child(key), &mut seen, errors);
            }
        }
        let downward = source.at(&["downwardAPI"]);
        if !downward.is_null() {
            count += 1;
            for file in downward.list_at(&["items"]) {
                downward_file(file, &item.child("downwardAPI"), errors);
                let at = file.str_at(&["path"]);
                if !at.is_empty() && !seen.insert(at) {
                    errors.invalid_str(path, at, CONFLICT);
                }
            }
        }
        let token = source.at(&["serviceAccountToken"]);
        if !token.is_null() {
            count += 1;
            self::token(token, path, &item.child("serviceAccountToken"), options, errors);
        }
        count += ["clusterTrustBundle", "podCertificate"].iter().filter(|key| !source.at(&[key]).is_null()).count();
        if count > 1 {
            errors.forbidden(&item, "may not specify more than 1 volume type per source");
        }
    }
}

fn keys<'a>(keyed: &'a Value, volume: &Path<'_>, path: &Path<'_>, seen: &mut HashSet<&'a str>, errors: &mut Errors) {
    let name = keyed.str_at(&["name"]);
    required(keyed, &["name"], path, errors);
    let items = path.child("items");
    for (n, item) in keyed.list_at(&["items"]).iter().enumerate() {
        key_to_path(item, &items.index(n), errors);
        let at = item.str_at(&["path"]);
        if !at.is_empty() && !seen.insert(at) {
            errors.invalid_str(volume, name, CONFLICT);
        }
    }
}

fn token(token: &Value, volume: &Path<'_>, path: &Path<'_>, options: &Options, errors: &mut Errors) {
    let life = token.int_at(&["expirationSeconds"]).unwrap_or(0);
    let life_path = path.child("expirationSeconds");
    if life < TOKEN_SECONDS_MIN {
        errors.invalid(&life_path, &life.into(), "may not specify a duration less than 10 minutes");
    }
    if life > TOKEN_SECONDS_MAX {
        errors.invalid(&life_path, &life.into(), "may not specify a duration larger than 2^32 seconds");
    }
    match token.str_at(&["path"]) {
        "" => errors.required(&volume.child("path"), ""),
        _ if options.any_token_path => {}
        at => paths::not_reserved(&volume.child("path"), at, errors),
    }
}

/// Returns the tokens that a pod spec projects, with the positions of their volume and source.
pub fn tokens(spec: &Value) -> impl Iterator<Item = (usize, usize, &Value)> {
    let volumes = spec.list_at(&["volumes"]).iter().enumerate();
    volumes.flat_map(|(v, volume)| {
        let sources = volume.list_at(&["projected", "sources"]).iter().enumerate();
        sources.filter_map(move |(s, source)| Some((v, s, source.get("serviceAccountToken")?)))
    })
}

/// Returns whether the stored object has a token whose path leaves the volume.
pub fn has_token_outside(spec: &Value) -> bool {
    let mut errors = Errors::default();
    tokens(spec).for_each(|(_, _, token)| paths::not_reserved(&Path::root(""), token.str_at(&["path"]), &mut errors));
    !errors.is_empty()
}
