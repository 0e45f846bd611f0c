//! The documentation covers every flag and every metric of the program, and the program understands every command in
//! the documentation.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::DataDir;

/// Returns the words of the code spans of a page. A `*` after other text stands for any text.
fn patterns(page: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(page);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.split('`').skip(1).step_by(2).flat_map(str::split_ascii_whitespace).map(str::to_owned).collect()
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((before, after)) => {
            // A `*` at the beginning would match every name.
            !before.is_empty()
                && name.len() >= before.len() + after.len()
                && name.starts_with(before)
                && name.ends_with(after)
        }
        None => pattern == name,
    }
}

fn undocumented<'a>(page: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let patterns = patterns(page);
    names.filter(|name| !patterns.iter().any(|pattern| matches(pattern, name))).collect()
}

#[test]
fn every_flag_is_documented() {
    let output = Command::new(env!("CARGO_BIN_EXE_flotilla")).args(["serve", "--help"]).output().expect("a program");
    let help = String::from_utf8(output.stdout).expect("text");
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let flags: Vec<&str> = lines
        .filter_map(|line| line.split([' ', ',']).find(|word| word.starts_with("--")))
        .map(|flag| flag.split(['=', '[']).next().unwrap_or(flag))
        .filter(|flag| flag.chars().all(|each| each.is_ascii_alphanumeric() || each == '-'))
        .filter(|flag| !matches!(*flag, "--help" | "--version"))
        .collect();
    assert!(flags.len() > 40, "only {} flags were found in the help", flags.len());
    let missing = undocumented("flags.md", flags.into_iter());
    assert!(missing.is_empty(), "docs/flags.md does not have {missing:?}");
}

#[test]
fn every_metric_is_documented() {
    let directory = DataDir::new();
    let text = directory.start().connect().get("/metrics").text();
    let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    assert!(names.len() > 40, "only {} metrics were found", names.len());
    let missing = undocumented("metrics.md", names.into_iter());
    assert!(missing.is_empty(), "docs/metrics.md does not have {missing:?}");
}

/// Returns the command lines of the program in the code blocks of a page: for each its arguments, up to a comment, a
/// redirection, another command, or a part that the reader fills in (`...`).
fn commands(page: &str) -> Vec<Vec<String>> {
    let is_over = |word: &&str| !matches!(*word, "&" | "|" | "&&" | ">" | "2>&1" | "..." | "#");
    // The output of a command may begin like a command: then a version follows.
    let is_command =
        |rest: &&str| rest.starts_with(|letter: char| letter.is_ascii_lowercase()) && !rest.starts_with("v1");
    let lines = page.lines().filter_map(|line| line.strip_prefix("    flotilla ")).filter(is_command);
    let words = lines.map(|line| line.split_ascii_whitespace().take_while(is_over).map(str::to_owned).collect());
    words.collect()
}

/// Returns every page of the documentation, with its path.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = vec![root.join("README.md"), root.join("deploy/README.md")];
    for folder in ["docs", "docs/runbooks"] {
        let entries =
            fs::read_dir(root.join(folder)).expect("a directory").map(|entry| entry.expect("an entry").path());
        paths.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(&path).expect("a page"))).collect()
}

#[test]
fn every_command_in_the_documentation_is_understood() {
    let mut understood = 0;
    for (path, page) in pages() {
        for command in commands(&page) {
            // With --help the program reads the command line and does nothing. It reports a wrong one before the help.
            let mut program = Command::new(env!("CARGO_BIN_EXE_flotilla"));
            let members = "a=127.0.0.1:7441,b=127.0.0.1:7442,c=127.0.0.1:7443";
            program.args(command.iter().map(|word| if word == "$all" { members } else { word })).arg("--help");
            let output = program.output().expect("a program");
            let messages = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: flotilla {}: {messages}", path.display(), command.join(" "));
            understood += 1;
        }
    }
    assert!(understood > 20, "only {understood} commands were found");
}
