//! Tests of the documentation pages: links, length, and paths.

use std::fs;
use std::path::{Path, PathBuf};

/// The largest number of lines of README.md.
const README_LINES_MAX: usize = 180;

/// Returns the path and text of every page.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.to_owned()];
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && !name.starts_with("target") {
                folders.push(path);
            } else if name.ends_with(".md") {
                let text = fs::read_to_string(&path).unwrap();
                pages.push((path, text));
            }
        }
    }
    assert!(pages.len() > 40, "only {} pages were found", pages.len());
    pages
}

/// Returns the targets of a page's links: `](TARGET)`, outside of code.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split('`').step_by(2);
    prose.flat_map(|part| part.split("](").skip(1)).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link)
}

/// Returns the anchor of a headline.
fn anchor(headline: &str) -> String {
    let kept = headline.chars().filter(|each| each.is_alphanumeric() || matches!(each, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn links_lead_to_files_and_headlines() {
    let mut complaints = Vec::new();
    for (page, text) in pages() {
        for link in links(&text).filter(|link| !link.contains("://")) {
            let (file, part) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            if !target.exists() {
                complaints.push(format!("{}: {link} leads nowhere", page.display()));
            } else if !part.is_empty() {
                let there = fs::read_to_string(&target).unwrap_or_default();
                let headlines = there.lines().filter(|line| line.starts_with('#'));
                if !headlines.map(|line| anchor(line.trim_start_matches('#').trim())).any(|it| it == part) {
                    complaints.push(format!("{}: {link} has no such headline", page.display()));
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_page_is_reached_from_the_first() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut reached, mut waiting) = (Vec::new(), vec![root.join("README.md")]);
    while let Some(page) = waiting.pop() {
        let text = fs::read_to_string(&page).unwrap_or_default();
        for link in links(&text).filter(|link| !link.contains("://")) {
            let Some(file) = link.split('#').next().filter(|file| !file.is_empty()) else { continue };
            if let Ok(target) = page.parent().unwrap().join(file).canonicalize()
                && target.extension().is_some_and(|extension| extension == "md")
                && !reached.contains(&target)
            {
                reached.push(target.clone());
                waiting.push(target);
            }
        }
    }
    let lost: Vec<_> = pages().into_iter().map(|(page, _)| page).filter(|page| !reached.contains(page)).collect();
    let lost: Vec<_> = lost.iter().filter(|page| **page != root.join("README.md")).collect();
    assert!(lost.is_empty(), "no page links to {lost:?}");
}

#[test]
fn the_first_page_is_short() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let lines = text.lines().count();
    assert!(lines <= README_LINES_MAX, "README.md has {lines} lines: move some to pages under docs/");
}

/// The roots of the crates, whose modules must be in the map of ARCHITECTURE.md.
const ROOTS: [&str; 6] = [
    "src/lib.rs",
    "src/cel/src/lib.rs",
    "src/objects/src/lib.rs",
    "cluster/src/lib.rs",
    "proto/src/lib.rs",
    "loadtest/src/main.rs",
];

#[test]
fn every_module_is_in_the_map() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let map = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let rows = map.lines().filter(|line| line.starts_with('|')).filter_map(|line| line.split('|').nth(1));
    let named: Vec<&str> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
    let mut missing = Vec::new();
    for file in ROOTS {
        let text = fs::read_to_string(root.join(file)).unwrap();
        let modules = text.lines().filter_map(|line| line.split("mod ").nth(1)?.strip_suffix(';'));
        let modules: Vec<&str> = modules.filter(|name| !name.ends_with("_tests")).collect();
        assert!(modules.len() > 5, "only {} modules were found in {file}", modules.len());
        missing
            .extend(modules.into_iter().filter(|name| !named.contains(name)).map(|name| format!("{name} of {file}")));
    }
    assert!(missing.is_empty(), "the map of ARCHITECTURE.md does not have {missing:?}");
}

/// Returns the words that the glossary of ARCHITECTURE.md defines.
fn glossary(text: &str) -> Vec<&str> {
    let (_, from) = text.split_once("\n## Glossary\n").unwrap();
    let rows = from.lines().take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with("| "));
    rows.skip(1).filter_map(|row| row.split('|').nth(1)).map(str::trim).collect()
}

/// Appends the text of every source file in a folder and the folders in it.
fn append_sources(folder: &Path, all: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.extension() {
            _ if path.is_dir() => append_sources(&path, all),
            Some(extension) if extension == "rs" => all.push_str(&fs::read_to_string(&path).unwrap()),
            _ => {}
        }
    }
}

#[test]
fn words_of_the_glossary_are_in_order_and_in_use() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let words = glossary(&text);
    assert!(words.len() > 40, "only {} words were found", words.len());
    assert!(words.is_sorted_by(|one, next| one < next), "each word stands once, and in its place: {words:?}");
    let mut sources = String::new();
    ["src", "cluster/src", "proto/src"].iter().for_each(|folder| append_sources(&root.join(folder), &mut sources));
    // Names join words by `_`, by `-` or by capitals.
    let joined = |text: &str| text.to_lowercase().replace([' ', '_', '-'], "");
    let sources = joined(&sources);
    let unused: Vec<&str> = words.into_iter().filter(|word| !sources.contains(&joined(word))).collect();
    assert!(unused.is_empty(), "no source file has the words {unused:?}");
}

/// Returns the paths of files and folders in a page's code spans.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    const BEGINNINGS: [&str; 7] = ["src/", "tests/", "cluster/", "proto/", "docs/", "loadtest/", ".ci/"];
    let code = text.split('`').skip(1).step_by(2);
    code.filter(|code| BEGINNINGS.iter().any(|beginning| code.starts_with(beginning)) && !code.contains(['*', ' ']))
}

#[test]
fn paths_in_contributing_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let lost: Vec<&str> = paths(&text).filter(|path| !root.join(path).exists()).collect();
    assert!(lost.is_empty(), "CONTRIBUTING.md names {lost:?}, which do not exist");
}
