//! Tests of the source files: lengths of files, functions and lines, names of types, whether every limit is used, and
//! whether bounds stand among the limits.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The largest number of lines of a source file. A file of tests may have twice as many.
const FILE_LINES_MAX: usize = 560;
/// The largest number of lines of a function.
const FUNCTION_LINES_MAX: usize = 70;
/// The largest number of columns of a line. Lines with string literals or URLs may be longer.
const COLUMNS_MAX: usize = 120;
/// Words in comments that readers of this code had to read twice.
const RIDDLES: [&str; 5] = ["whoever", "somebody", "what there is", " is to be ", " are to be "];
/// Names that do not tell their meaning.
const VAGUE_WORDS: [&str; 5] = ["is_so", "is_to_be", "is_to_do", "rope", "door"];
/// File names that do not tell the content of the file.
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
/// Endings of the names of numbers that bound something.
const BOUND_ENDINGS: [&str; 21] = [
    "ATTEMPTS",
    "CONCURRENT",
    "RETRIES",
    "WORKERS",
    "_ASKED",
    "_BYTES",
    "_CAPACITY",
    "_CHARACTERS",
    "_CHUNK",
    "_DEPTH",
    "_ENTRIES",
    "_INTERVAL",
    "_ITEMS",
    "_LEVELS",
    "_LIMIT",
    "_MAX",
    "_SECONDS",
    "_SHOWN",
    "_SIZE",
    "_TIMEOUT",
    "_TRIES",
];
/// Types of numbers.
const INTEGERS: [&str; 12] = ["u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize"];
/// Files and folders with numbers that may stand outside of limits. The module page of `src/limits` says which may.
const ELSEWHERE: [&str; 22] = [
    // Fields of the API: lengths of names and ranges of values that Kubernetes validates.
    "src/objects/src/fieldmanager",
    "src/objects/src/kinds",
    "src/objects/src/rules",
    "proto/src/names.rs",
    // The extent of cells of a Table.
    "src/objects/src/printing",
    // Defaults of flags.
    "src/config",
    // Kubernetes' cost model: its assumed sizes of values without bounds in a schema, and of attributes of devices.
    "src/cel/src/device.rs",
    "src/cel/src/schema/declared.rs",
    // Formats: sizes of headers and of other parts.
    "cluster/src/chunk.rs",
    "cluster/src/disk/file_key.rs",
    "cluster/src/peer/frame.rs",
    "proto/src/protobuf/scalar.rs",
    "src/etcd_snapshot",
    // Sizes of keys, nonces, digests, serial numbers and secrets.
    "src/console/links.rs",
    "src/custom/resource.rs",
    "src/encryption",
    "src/pki/requested.rs",
    // Ranges of types: of Go's durations and times, of exact numbers, and of Unicode.
    "proto/src/duration.rs",
    "proto/src/quantity/parse.rs",
    "src/cel/src/value/time.rs",
    "src/golang/src/regexp/escape.rs",
    "src/objects/src/expressions/objects.rs",
];

struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    fn is_test(&self) -> bool {
        let name = self.path.to_string_lossy();
        name.ends_with("_tests.rs") || name.contains("/tests/") || name.ends_with("/tests.rs")
    }

    /// Returns whether the file is a module `limits` or a part of one.
    fn is_of_limits(&self) -> bool {
        self.path.ends_with("src/limits.rs") || self.path.parent().is_some_and(|folder| folder.ends_with("src/limits"))
    }

    /// Returns the lines before the tests in the file.
    fn tested(&self) -> &str {
        self.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
    }

    /// Returns the paths, without their ending, of the modules that the file declares for tests only.
    fn modules_of_tests(&self) -> impl Iterator<Item = PathBuf> {
        let is_root = ["lib.rs", "main.rs", "mod.rs"].iter().any(|name| self.path.ends_with(name));
        let folder = if is_root { self.path.parent().unwrap().to_owned() } else { self.path.with_extension("") };
        let items = self.text.split("#[cfg(test)]\n").skip(1);
        let declared = items.filter_map(|rest| rest.lines().find(|line| !line.starts_with("#[")));
        let names = declared.filter_map(|line| line.split_once("mod ")?.1.strip_suffix(';'));
        names.map(move |name| folder.join(name))
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

/// Returns a line without its string literals, as far as they begin and end in it.
fn without_texts(line: &str) -> String {
    line.split('"').step_by(2).collect()
}

#[test]
fn names_and_comments_use_plain_words() {
    let mut complaints = Vec::new();
    for source in sources().iter().filter(|source| !source.path.ends_with("tidy.rs")) {
        for (number, line) in source.text.lines().enumerate() {
            let words = without_texts(line).to_lowercase();
            let is_apart = |letter: char| !letter.is_alphanumeric() && letter != '_';
            let has_name = |name: &str| words.split(is_apart).any(|word| word == name);
            let riddle = RIDDLES.iter().find(|riddle| words.contains(**riddle));
            if let Some(riddle) = riddle.or_else(|| VAGUE_WORDS.iter().find(|name| has_name(name))) {
                complaints.push(format!("{}:{} has {riddle:?}", source.path.display(), number + 1));
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
    for limits in sources.iter().filter(|source| source.is_of_limits()) {
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

/// Returns what follows the visibility of an item.
fn item(line: &str) -> &str {
    match line.trim_start().strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ").map_or(rest, |(_, item)| item),
        Some(rest) => rest.trim_start(),
        None => line.trim_start(),
    }
}

/// Returns the text after the keyword of a constant. `None` if the line does not begin one.
fn constant(line: &str) -> Option<&str> {
    item(line).strip_prefix("const ").filter(|rest| !rest.starts_with("fn "))
}

/// Returns the name of the bound that the line declares: of a time span, or of a number whose name sounds like a bound.
fn bound(line: &str) -> Option<&str> {
    let (name, rest) = constant(line)?.split_once(": ")?;
    let kind = rest.split(" =").next()?;
    let is_number = INTEGERS.contains(&kind) && BOUND_ENDINGS.iter().any(|ending| name.ends_with(ending));
    (is_number || kind.contains("Duration")).then_some(name)
}

/// Returns whether the line has a time span other than nothing and one unit.
fn has_time_span(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let spans = code.split("Duration::from_").skip(1).filter_map(|rest| rest.split_once('(')?.1.split(')').next());
    spans.into_iter().any(|span| {
        let is_literal = span.starts_with(|letter: char| letter.is_ascii_digit());
        is_literal && !["0", "1"].contains(&span) && !span.contains(|letter: char| letter.is_ascii_alphabetic())
    })
}

/// Returns the bounds that the text has outside of modules `limits`: names of constants, and lines with time spans.
fn bounds(text: &str) -> Vec<&str> {
    let (mut found, mut is_constant) = (Vec::new(), false);
    for line in text.lines() {
        is_constant |= constant(line).is_some() || item(line).starts_with("static ");
        found.extend(bound(line));
        if !is_constant && has_time_span(line) {
            found.push(line.trim());
        }
        is_constant &= !line.ends_with(';');
    }
    found
}

#[test]
fn bounds_stand_in_limits() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = sources();
    let of_tests: Vec<PathBuf> = sources.iter().flat_map(Source::modules_of_tests).collect();
    let is_of_tests = |source: &Source| {
        source.is_test() || of_tests.iter().any(|module| source.path.with_extension("").starts_with(module))
    };
    let is_elsewhere = |source: &Source| ELSEWHERE.iter().any(|path| source.path.starts_with(root.join(path)));
    let counts = |source: &Source| {
        let is_inside = ["src", "cluster/src", "proto/src"].iter().any(|part| source.path.starts_with(root.join(part)));
        is_inside && !source.is_of_limits() && !is_of_tests(source)
    };
    let mut complaints = Vec::new();
    for source in sources.iter().filter(|source| counts(source) && !is_elsewhere(source)) {
        for bound in bounds(source.tested()) {
            complaints.push(format!("{} has a bound outside of limits: {bound}", source.path.display()));
        }
    }
    for path in ELSEWHERE {
        let of_path = sources.iter().filter(|source| source.path.starts_with(root.join(path)) && counts(source));
        if of_path.flat_map(|source| bounds(source.tested())).next().is_none() {
            complaints.push(format!("{path} needs no exception"));
        }
    }
    complain(&complaints);
}

#[test]
fn bounds_are_found() {
    let of_constants = "const PAUSE: Duration = X;\npub(super) const KEYS_MAX: u64 = 3;\n    pub const NAME: u8 = 1;";
    assert_eq!(bounds(of_constants), ["PAUSE", "KEYS_MAX"]);
    assert_eq!(bounds("sleep(Duration::from_millis(4 * 3_600));"), ["sleep(Duration::from_millis(4 * 3_600));"]);
    assert!(bounds("const fn new(lifetime: Duration) {").is_empty());
    assert!(bounds("const A: Span = Span {\n    lasts: Duration::from_secs(5),\n};").is_empty());
    assert!(bounds("a(Duration::from_secs(1), Duration::from_secs(seconds), Duration::from_secs(0));").is_empty());
}
