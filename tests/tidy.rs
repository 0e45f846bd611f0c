//! Tests of the source files: lengths of files, functions and lines, names of types, and whether every limit is used.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The largest number of lines of a source file. A file of tests may have twice as many.
const FILE_LINES_MAX: usize = 560;
/// The largest number of lines of a function.
const FUNCTION_LINES_MAX: usize = 70;
/// The largest number of columns of a line. Lines with string literals or URLs may be longer.
const COLUMNS_MAX: usize = 120;
/// File names that do not tell what the file contains.
const VAGUE_NAMES: [&str; 6] = ["common", "helper", "helpers", "manager", "util", "utils"];
/// The largest number of types of one name.
const TYPES_OF_ONE_NAME_MAX: usize = 3;
/// Names that more types may have, since a reader meets them together with the name of their module.
const CONVENTIONAL_TYPE_NAMES: [&str; 2] = [
    "Error", // the error of a module, as in `std::fmt::Error`
    "State", // what the component of the same file keeps, mostly behind its lock
];
/// Names that fit almost any type. At most one type has each.
const VAGUE_TYPE_NAMES: [&str; 11] =
    ["Attempt", "Found", "Part", "Place", "Places", "Reader", "Step", "Target", "Verdict", "Work", "Writer"];
/// Marks of unfinished work.
const LEFTOVERS: [&str; 5] = ["dbg!(", "todo!(", "unimplemented!(", concat!("FIX", "ME"), concat!("TO", "DO")];

struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    fn is_test(&self) -> bool {
        let name = self.path.to_string_lossy();
        name.ends_with("_tests.rs") || name.contains("/tests/") || name.ends_with("/tests.rs")
    }
}

/// Returns every Rust file of the workspace.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<PathBuf> =
        ["src", "tests", "cluster", "proto", "loadtest"].iter().map(|name| root.join(name)).collect();
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                sources.push(Source { path, text });
            }
        }
    }
    assert!(sources.len() > 500, "only {} files were found", sources.len());
    sources
}

fn complain(complaints: &[String]) {
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn files_are_short_and_begin_with_a_module_page() {
    let mut complaints = Vec::new();
    for source in sources() {
        let (lines, path) = (source.text.lines().count(), source.path.display());
        if lines > if source.is_test() { 2 * FILE_LINES_MAX } else { FILE_LINES_MAX } {
            complaints.push(format!("{path} has {lines} lines"));
        }
        if !source.is_test() && !source.text.starts_with("//!") {
            complaints.push(format!("{path} does not begin with a module page"));
        }
        let name = source.path.file_stem().unwrap_or_default().to_string_lossy();
        if VAGUE_NAMES.contains(&&*name) {
            complaints.push(format!("{path} has a vague name"));
        }
    }
    complain(&complaints);
}

#[test]
fn lines_fit_and_contain_no_unfinished_work() {
    let mut complaints = Vec::new();
    for source in sources() {
        for (number, line) in source.text.lines().enumerate() {
            let place = format!("{}:{}", source.path.display(), number + 1);
            if line.chars().count() > COLUMNS_MAX && !line.contains('"') && !line.contains("://") {
                complaints.push(format!("{place} has more than {COLUMNS_MAX} columns"));
            }
            if !source.path.ends_with("tidy.rs") && LEFTOVERS.iter().any(|leftover| line.contains(leftover)) {
                complaints.push(format!("{place} is unfinished work: {}", line.trim()));
            }
        }
    }
    complain(&complaints);
}

/// Returns the first line and the length of each function, in the layout of rustfmt.
fn functions(text: &str) -> Vec<(usize, usize)> {
    let (mut found, mut open): (Vec<_>, Vec<(usize, usize)>) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        let (indent, code) = (line.len() - line.trim_start().len(), line.trim_start());
        let words = code.split_whitespace().take(6);
        let is_head = words.clone().any(|word| word == "fn") && !code.starts_with("//") && !code.contains('"');
        if is_head && !code.ends_with(';') {
            open.push((number + 1, indent));
        }
        if matches!(code, "}" | "})")
            && let Some(&(start, at)) = open.last()
            && at == indent
        {
            open.pop();
            found.push((start, number + 2 - start));
        }
    }
    found
}

#[test]
fn functions_fit_a_screen() {
    let sources = sources();
    let all: Vec<_> = sources.iter().map(|source| (source, functions(&source.text))).collect();
    assert!(all.iter().map(|(_, functions)| functions.len()).sum::<usize>() > 4_000, "functions are not recognized");
    let mut complaints = Vec::new();
    for (source, functions) in all {
        for (line, length) in functions {
            if length > FUNCTION_LINES_MAX && !source.is_test() {
                complaints.push(format!("{}:{line} has {length} lines", source.path.display()));
            }
        }
    }
    complain(&complaints);
}

/// Returns the type that a line at the level of the module defines. `None` if it defines none.
fn defined_type(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
    let is_definition = matches!(words.next()?, "struct" | "enum" | "trait" | "type") && !line.starts_with(' ');
    words.next().filter(|_| is_definition)?.split(|sign: char| !sign.is_alphanumeric() && sign != '_').next()
}

#[test]
fn a_type_name_has_one_meaning() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = sources();
    let ours = |source: &&Source| {
        !source.is_test() && ["src", "cluster", "proto"].iter().any(|name| source.path.starts_with(root.join(name)))
    };
    let mut defined: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for source in sources.iter().filter(ours) {
        for name in source.text.lines().filter_map(defined_type) {
            defined.entry(name).or_default().push(source.path.display().to_string());
        }
    }
    assert!(defined.len() > 1_000, "only {} names of types were found", defined.len());
    let mut complaints = Vec::new();
    for (name, files) in &mut defined {
        let most = if VAGUE_TYPE_NAMES.contains(name) { 1 } else { TYPES_OF_ONE_NAME_MAX };
        if files.len() > most && !CONVENTIONAL_TYPE_NAMES.contains(name) {
            files.sort();
            complaints.push(format!("{} types are called {name}: in {}", files.len(), files.join(", ")));
        }
    }
    for name in CONVENTIONAL_TYPE_NAMES {
        if defined.get(name).is_none_or(|files| files.len() <= TYPES_OF_ONE_NAME_MAX) {
            complaints.push(format!("{name} needs no exception"));
        }
    }
    complain(&complaints);
}

#[test]
fn every_limit_is_used() {
    let sources = sources();
    let mut complaints = Vec::new();
    let of_limits =
        |path: &Path| path.ends_with("src/limits.rs") || path.parent().is_some_and(|dir| dir.ends_with("src/limits"));
    for limits in sources.iter().filter(|source| of_limits(&source.path)) {
        let names = limits.text.lines().filter_map(|line| line.strip_prefix("pub const ")?.split(':').next());
        for name in names {
            let used = |source: &Source| source.path != limits.path && source.text.contains(name);
            let beside = limits.text.matches(name).count() > 1;
            if !beside && !sources.iter().any(used) {
                complaints.push(format!("{name} of {} is used nowhere", limits.path.display()));
            }
        }
    }
    complain(&complaints);
}
