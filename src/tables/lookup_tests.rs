use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::*;
use crate::access::rbac;
use crate::custom;

/// Tables that admission reads by other functions than those of this module, each with a file that names the resource.
const READ_ELSEWHERE: [(&str, &str, &str); 4] = [
    (custom::GROUP, custom::RESOURCE, "registry/create.rs"),
    ("", "namespaces", "admission/match_attributes.rs"),
    ("networking.k8s.io", "ipaddresses", "registry/allocation/addresses.rs"),
    ("networking.k8s.io", "servicecidrs", "registry/allocation/addresses.rs"),
];

/// Adds the text of each source file below a folder to `found`, except the files of tests.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if !path.to_string_lossy().ends_with("_tests.rs") {
            found.push(fs::read_to_string(&path).expect("a source file"));
        }
    }
}

/// Returns the value of an argument: a literal, or a constant of the same file.
fn value(argument: &str, file: &str) -> String {
    let literal = |text: &str| text.trim().strip_prefix('"').and_then(|rest| rest.split('"').next()).map(str::to_owned);
    let constant =
        || file.split_once(&format!("const {}: &str = ", argument.trim())).and_then(|(_, rest)| literal(rest));
    literal(argument).or_else(constant).unwrap_or_else(|| panic!("{argument} is neither a literal nor a constant"))
}

/// Returns the tables that a file looks up.
fn looked_up(file: &str) -> BTreeSet<String> {
    let mut tables = BTreeSet::new();
    for function in [".look_up(", ".look_up_all(", ".look_up_mentioning("] {
        for call in file.split(function).skip(1) {
            let mut arguments = call.split(',');
            let mut next = || arguments.next().unwrap_or_default();
            let (group, resource) = (next(), next());
            if (group.trim(), resource.trim()) != ("group", "resource") {
                tables.insert(table(&value(group, file), &value(resource, file)));
            }
        }
    }
    tables
}

fn table(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{group}/{resource}") }
}

#[test]
fn admission_reads_exactly_the_listed_tables() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root.join("admission"), &mut files);
    sources(&root.join("tables"), &mut files);
    sources(&root.join("registry"), &mut files);
    let mut read: BTreeSet<String> = files.iter().flat_map(|file| looked_up(file)).collect();
    for (group, resource, file) in READ_ELSEWHERE {
        let text = fs::read_to_string(root.join(file)).expect("a source file");
        let names_it = text.contains(&format!("\"{resource}\"")) || text.contains("custom::RESOURCE");
        assert!(names_it, "{file} does not name {resource}");
        read.insert(table(group, resource));
    }
    read.extend(rbac::RESOURCES.map(|resource| table(rbac::GROUP, resource)));
    let listed: BTreeSet<String> = CONSULTED.iter().chain(&GLANCED_AT).map(|name| (*name).to_owned()).collect();
    assert_eq!(read, listed);
}
