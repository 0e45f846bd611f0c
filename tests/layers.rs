//! A test of the module layers: a module imports only modules that come before it in the order in the crate's root.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A line of the order that contains this text lists modules that may import each other.
const MUTUAL: &str = "each asking the other";

/// The roots of the crates whose order is checked.
const ORDERED: [&str; 7] =
    ["src", "src/objects/src", "cluster/src", "src/cel/src", "src/etcd_snapshot/src", "src/golang/src", "proto/src"];

/// Returns the position of each module in the order. Modules that may import each other have the same position.
fn order(root: &str) -> BTreeMap<String, usize> {
    let stated = root.split_once("//! # Order").expect("the crate's root states the order").1;
    let mut places = BTreeMap::new();
    let mut mutual = false;
    for line in stated.lines().filter_map(|line| line.strip_prefix("//!")) {
        mutual = if line.starts_with(" - ") { line.contains(MUTUAL) } else { mutual };
        if !line.starts_with(" - ") && !line.starts_with("   ") {
            continue; // prose
        }
        let line_place = places.len();
        for name in line.split('`').skip(1).step_by(2) {
            let place = if mutual { line_place } else { places.len() };
            assert!(places.insert(name.to_owned(), place).is_none(), "{name} is named twice");
        }
    }
    places
}

/// Returns the modules of the crate that a text imports or names.
fn named(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let is_other = text[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == '$');
        let rest = &text[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            _ if is_other => {}
            None => found.push(word(rest)),
            Some(list) => found.extend(listed(list)),
        }
    }
    found
}

/// Returns the first word of each item of a list, up to the closing brace.
fn listed(list: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut found) = (0, 0, Vec::new());
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' | b',' if depth == 0 => {
                found.push(word(list[begin..at].trim_start()));
                begin = at + 1;
                if byte == b'}' {
                    break;
                }
            }
            b'}' => depth -= 1,
            _ => {}
        }
    }
    found
}

fn word(text: &str) -> &str {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or_default()
}

fn files(path: PathBuf, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        fs::read_dir(&path).unwrap().for_each(|entry| files(entry.unwrap().path(), found));
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        found.push(path);
    }
}

/// Returns the code without its comments.
fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Returns the modules that a crate's root declares, except for those that only tests use.
fn declared(root: &str) -> Vec<&str> {
    let lines: Vec<&str> = root.lines().collect();
    let module = |line: &'_ str| line.strip_prefix("pub mod ").or(line.strip_prefix("mod ")).map(str::len);
    let is_tested = |at: usize| {
        lines[..at].iter().rev().take_while(|line| line.starts_with("#[")).any(|line| *line == "#[cfg(test)]")
    };
    let own = lines.iter().enumerate().filter(|(at, line)| module(line).is_some() && !is_tested(*at));
    own.map(|(_, line)| word(&line[line.len() - module(line).unwrap_or_default()..])).collect()
}

/// Returns every import that violates the order in the crate's root.
fn complaints(src: &Path) -> Vec<String> {
    let root = fs::read_to_string(src.join("lib.rs")).unwrap();
    let places = order(&root);
    let mut complaints: Vec<String> = Vec::new();
    for module in declared(&root) {
        let Some(place) = places.get(module) else {
            complaints.push(format!("{module} has no place under \"# Order\" in {}", src.join("lib.rs").display()));
            continue;
        };
        let mut found = Vec::new();
        files(src.join(module), &mut found);
        found.extend([format!("{module}.rs"), format!("{module}_tests.rs")].map(|name| src.join(name)));
        for path in found.iter().filter(|path| path.is_file()) {
            let text = code(&fs::read_to_string(path).unwrap());
            for other in named(&text) {
                let above = places.get(other).is_some_and(|of| of > place);
                if above && other != module {
                    complaints.push(format!("{} imports {other}, which lies above {module}", path.display()));
                }
            }
        }
    }
    complaints
}

#[test]
fn modules_import_only_what_lies_below_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let complaints = ORDERED.map(|src| complaints(&root.join(src))).concat();
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn imports_are_found_in_every_form() {
    assert_eq!(named("use crate::a::b;\nlet x = crate::c::d();"), ["a", "c"]);
    assert_eq!(named("use crate::{a::{self, b}, c, d::e};"), ["a", "c", "d"]);
    assert!(named("$crate::a; other_crate::b").is_empty());
    let places = order(
        "//! # Order\n//!\n//! Prose of `x`.\n//!\n//! - One: `a`,\n//!   `b`\n//! - each asking the other: `c`, `d`\n",
    );
    assert_eq!(
        places.into_iter().collect::<Vec<_>>(),
        [("a".into(), 0), ("b".into(), 1), ("c".into(), 2), ("d".into(), 2)]
    );
}
