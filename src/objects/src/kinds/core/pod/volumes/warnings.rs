//! Warnings about volumes: types without a driver, and files that hide each other.

use std::collections::HashSet;

use flotilla_proto::value::Value;

use crate::field::{Path, quote};
use crate::limits;
use crate::rules::resources;

const OLD_TYPES: [(&str, &str, &str); 7] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
];
const OLD_CEPH: &str = "deprecated in v1.28, non-functional in v1.31+";

/// Adds the warnings about the volumes of a pod spec.
pub fn of_volumes(volumes: &[Value], path: &Path<'_>, into: &mut Vec<String>) {
    for (n, volume) in volumes.iter().enumerate() {
        let path = path.index(n);
        for (key, shown, why) in OLD_TYPES {
            if volume.get(key).is_some() {
                into.push(format!("{}: {why}", path.child(shown)));
            }
        }
        if let Some(spec) = volume.get("ephemeral").and_then(|source| source.get("volumeClaimTemplate")) {
            let ephemeral = path.child("ephemeral");
            let template = ephemeral.child("volumeClaimTemplate");
            of_claim(spec.at(&["spec"]), &template.child("spec"), into);
        }
        for key in ["cephfs", "rbd"] {
            if volume.get(key).is_some() {
                into.push(format!("{}: {OLD_CEPH}", path.child(key)));
            }
        }
    }
    let mut warnings = Warnings { told: HashSet::new(), into };
    volumes.iter().for_each(|volume| overlaps(volume, &mut warnings));
}

/// Warnings about pairs of files, each once.
struct Warnings<'a> {
    told: HashSet<String>,
    into: &'a mut Vec<String>,
}

impl Warnings<'_> {
    fn is_full(&self) -> bool {
        self.told.len() >= limits::WARNINGS
    }

    fn push(&mut self, warning: String) {
        if self.told.insert(warning.clone()) {
            self.into.push(warning);
        }
    }
}

/// Warns of sizes in the spec of a claim that are not whole bytes.
pub fn of_claim(spec: &Value, path: &Path<'_>, into: &mut Vec<String>) {
    let path = path.child("resources");
    for list in ["requests", "limits"] {
        let amount = resources::amount(spec.at(&["resources", list, "storage"]));
        if amount.milli_value() % 1000 != 0 {
            let (path, amount) = (path.child(list), quote(&amount.to_string()));
            let why = format!("fractional byte value {amount} is invalid, must be an integer");
            into.push(format!("{}: {why}", path.key("storage")));
        }
    }
}

/// A file of a volume, and its source.
#[derive(Debug, PartialEq, Eq)]
struct File {
    path: String,
    source: String,
}

impl File {
    fn shown(&self) -> String {
        let path = quote(&self.path);
        if self.source.is_empty() { path } else { format!("{path} ({})", self.source) }
    }

    fn overlaps(&self, other: &Self) -> bool {
        let inside = |inner: &str, outer: &str| {
            inner == outer || inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
        };
        !other.path.is_empty() && (self == other || inside(&other.path, &self.path) || inside(&self.path, &other.path))
    }
}

fn files(items: &[Value], source: &str) -> Vec<File> {
    items.iter().map(|item| File { path: item.str_at(&["path"]).into(), source: source.into() }).collect()
}

fn overlaps(volume: &Value, warnings: &mut Warnings<'_>) {
    let name = quote(volume.str_at(&["name"]));
    let named = |kind: &str, name: &str| format!("{kind} {}", quote(name));
    for (key, kind, reference) in
        [("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName"), ("downwardAPI", "DownwardAPI", "")]
    {
        let Some(source) = volume.get(key) else { continue };
        let shown = if reference.is_empty() { kind.into() } else { named(kind, source.str_at(&[reference])) };
        collect(files(source.list_at(&["items"]), ""), &name, &shown, &mut Vec::new(), warnings);
    }
    let Some(projected) = volume.get("projected") else { return };
    let mut all = Vec::new();
    for source in projected.list_at(&["sources"]) {
        let found = if let Some(keyed) = source.get("configMap").filter(|keyed| keyed.get("items").is_some()) {
            files(keyed.list_at(&["items"]), &named("ConfigMap", keyed.str_at(&["name"])))
        } else if let Some(keyed) = source.get("secret").filter(|keyed| keyed.get("items").is_some()) {
            files(keyed.list_at(&["items"]), &named("Secret", keyed.str_at(&["name"])))
        } else if let Some(downward) = source.get("downwardAPI").filter(|source| source.get("items").is_some()) {
            files(downward.list_at(&["items"]), "DownwardAPI")
        } else if let Some(token) = source.get("serviceAccountToken") {
            files(std::slice::from_ref(token), "ServiceAccountToken")
        } else {
            if source.as_object().is_some_and(|source| source.is_empty()) {
                warnings.into.push(format!("volume {name} (Projected) has no sources provided"));
            }
            continue;
        };
        collect(found, &name, "Projected", &mut all, warnings);
    }
}

/// Warns of each file that overlaps an earlier one. `earlier` has each file once: equal ones cause equal warnings.
fn collect(files: Vec<File>, volume: &str, kind: &str, earlier: &mut Vec<File>, warnings: &mut Warnings<'_>) {
    for mut file in files {
        file.path.truncate(file.path.trim_end_matches('/').len());
        for other in earlier.iter().filter(|other| !file.path.is_empty() && file.overlaps(other)) {
            if warnings.is_full() {
                return;
            }
            let both = format!("{} with {}", file.shown(), other.shown());
            warnings.push(format!("volume {volume} ({kind}): overlapping paths: {both}"));
        }
        if !earlier.contains(&file) {
            earlier.push(file);
        }
    }
}
