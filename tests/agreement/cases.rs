//! Reads scenarios, recordings of Kubernetes' answers, and the floor: the counts of steps that must agree.

use std::fs;
use std::path::{Path, PathBuf};

use super::compare::Seen;
use super::json::Json;
use super::yaml;

/// A scenario and the answers of Kubernetes.
pub struct Case {
    pub name: String,
    pub area: String,
    pub scenario: Json,
    pub recorded: Vec<Seen>,
}

/// The demand of a line of the floor on an area.
#[derive(Debug)]
pub struct Demand {
    pub area: String,
    pub steps: usize,
    /// The number of servers: one, or the three members of a cluster.
    pub servers: usize,
    /// Whether the area is left out unless everything is compared.
    pub is_long: bool,
    /// The release of kubectl, for transcripts.
    pub release: String,
}

/// Returns the files of all scenarios, ordered by path.
pub fn files(cases: &Path) -> Vec<PathBuf> {
    let (mut folders, mut files) = (vec![cases.join("scenarios")], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Reads the scenarios with these names, and all scenarios in areas with these names. Reads every scenario if `names`
/// is empty.
///
/// # Errors
/// States which file cannot be read, and why.
pub fn read(cases: &Path, names: &[String]) -> Result<Vec<Case>, String> {
    let mut found = Vec::new();
    for file in files(cases) {
        let part = |path: Option<&Path>| {
            path.and_then(Path::file_stem).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let (name, area) = (part(Some(&file)), part(file.parent()));
        if !names.is_empty() && !names.contains(&name) && !names.contains(&area) {
            continue;
        }
        let with_path = |error: String| format!("{}: {error}", file.display());
        let text = fs::read_to_string(&file).map_err(|error| with_path(error.to_string()))?;
        let scenario = yaml::parse(&text).map_err(with_path)?;
        let recording = cases.join("recorded").join(format!("{name}.json"));
        let recorded = fs::read(&recording).map_err(|error| format!("{}: {error}", recording.display()))?;
        let recorded = Json::parse(&recorded).and_then(|steps| steps.as_list()?.iter().map(Seen::recorded).collect());
        let recorded = recorded.ok_or_else(|| format!("{}: not a recording", recording.display()))?;
        found.push(Case { name, area, scenario, recorded });
    }
    Ok(found)
}

/// Reads the floor. Each line has the area, the count, `steps` or `commands`, the number of servers, the release of
/// kubectl or `-`, and `long` for an area that is compared only when everything is. Without a file `floor`, nothing is
/// demanded.
///
/// # Errors
/// States which line cannot be read.
pub fn floor(cases: &Path) -> Result<Vec<Demand>, String> {
    let text = fs::read_to_string(cases.join("floor")).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| demand(line).ok_or_else(|| format!("floor: {line}"))).collect()
}

fn demand(line: &str) -> Option<Demand> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (area, steps, servers) = (words.first()?, words.get(1)?, words.get(3)?);
    Some(Demand {
        area: (*area).to_owned(),
        steps: steps.parse().ok()?,
        servers: servers.parse().ok()?,
        is_long: words.get(5) == Some(&"long"),
        release: words.get(4).unwrap_or(&"-").to_string(),
    })
}
