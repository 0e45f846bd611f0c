//! Alerts, rules, dashboards and runbooks in `deploy/` and `docs/` match the metrics that servers expose.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{CONFIG_MAPS, DataDir, config_map};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the texts of a folder's files with this extension.
fn files(folder: &str, extension: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut found: Vec<String> =
        names.filter(|name| Path::new(name).extension().is_some_and(|it| it == extension)).collect();
    found.sort();
    assert!(!found.is_empty(), "{folder} has no .{extension}");
    found.into_iter().map(|name| format!("{folder}/{name}")).collect()
}

/// A metric that an expression selects, and the labels in its selector.
type Selected = (String, BTreeSet<String>);

/// Finds everything that expressions select: each is a name before braces, and the labels between the braces.
fn selected(text: &str) -> Vec<Selected> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('{') {
        let name: String =
            text[..at].chars().rev().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':')).collect();
        let name: String = name.chars().rev().collect();
        if name.is_empty() {
            continue;
        }
        let within = text[at + 1..].split('}').next().unwrap_or_default();
        let labels = within.split(',').filter_map(|matcher| {
            let label: String = matcher.trim().chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            (!label.is_empty()).then_some(label)
        });
        found.push((name, labels.collect()));
    }
    found
}

/// Finds names with a colon, which are those of recording rules.
fn recorded(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | ':')));
    words.filter(|word| word.starts_with("flotilla:")).map(str::to_owned).collect()
}

fn expressions(value: &Value, found: &mut String) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == "expr" => *found += &format!("{text}\n"),
                    other => expressions(other, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        _ => {}
    }
}

/// Returns all metrics of a page, with the labels of their series.
fn exposed(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut all = BTreeMap::<String, BTreeSet<String>>::new();
    for line in page.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            all.entry(declared.split(' ').next().unwrap_or_default().to_owned()).or_default();
        } else if !line.starts_with('#') && !line.is_empty() {
            let name = line.split(['{', ' ']).next().unwrap_or_default().to_owned();
            let labels = all.entry(name.clone()).or_default();
            labels.extend(
                selected(line.rsplit_once(' ').map_or(line, |(series, _)| series)).into_iter().flat_map(|it| it.1),
            );
        }
    }
    all
}

#[test]
fn rules_and_dashboards_use_only_existing_metrics() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut administrator = server.connect();
    administrator.post(CONFIG_MAPS, &config_map("a", "1")).expect(201);
    administrator.get(CONFIG_MAPS).expect(200);
    let mut watch = server.connect().watch(&format!("{CONFIG_MAPS}?watch=1")).expect("a connection").expect("a watch");
    watch.next().expect("an event");
    let known = exposed(&administrator.get("/metrics").text());
    assert!(known.len() > 40, "{known:?}");
    let mut texts: Vec<(String, String)> = ["recording", "alerts"]
        .map(|name| format!("deploy/prometheus/{name}.yaml"))
        .map(|path| (path.clone(), read(&path)))
        .into();
    for path in files("deploy/grafana", "json") {
        let dashboard: Value = serde_json::from_str(&read(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut all = String::new();
        expressions(&dashboard, &mut all);
        texts.push((path, all));
    }
    let made = recorded(&texts[0].1);
    for (path, text) in &texts {
        let all = selected(text);
        assert!(!all.is_empty(), "{path} selects nothing");
        for (name, labels) in all.into_iter().filter(|(name, _)| name != "up") {
            let has = known.get(&name).unwrap_or_else(|| panic!("{path}: no server exposes {name}"));
            // A metric without series shows no labels. Prometheus adds labels of its own for each target.
            let unknown: Vec<_> = labels
                .iter()
                .filter(|label| !has.contains(*label) && !matches!(&***label, "job" | "instance"))
                .collect();
            assert!(has.is_empty() || unknown.is_empty(), "{path}: {name} has {has:?}, not {unknown:?}");
        }
        let unmade: Vec<_> = recorded(text).difference(&made).cloned().collect();
        assert!(unmade.is_empty(), "{path}: no rule records {unmade:?}");
    }
}

#[test]
fn every_alert_has_a_runbook_and_every_runbook_an_alert() {
    let alerts = read("deploy/prometheus/alerts.yaml");
    let names: BTreeSet<&str> = alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(names.len() > 10, "{names:?}");
    let index = read("docs/runbooks/README.md");
    for name in &names {
        let page = format!("docs/runbooks/{name}.md");
        assert!(alerts.contains(&format!("runbook: {page}")), "{name} names no page");
        assert!(index.contains(&format!("({name}.md)")), "{name} is not in docs/runbooks/README.md");
        let (rule, page) = (alerts.split(&format!("- alert: {name}\n")).nth(1).expect("a rule"), read(&page));
        let expression = rule.lines().nth(1).expect("an expression").trim();
        assert!(page.contains(expression), "the page of {name} does not show {expression}");
        assert!(page.contains("## What to do"), "the page of {name} does not say what to do");
        assert!(read("deploy/prometheus/tests.yaml").contains(name), "no test lets {name} fire");
    }
    for page in files("docs/runbooks", "md") {
        let name = Path::new(&page).file_stem().expect("a name").to_string_lossy().into_owned();
        assert!(name == "README" || names.contains(&*name), "{page} belongs to no alert");
    }
}

#[test]
fn disk_clock_and_certificates_are_measured() {
    let directory = DataDir::new();
    let server = directory.start();
    let page = server.connect().get("/metrics").text();
    let value = |series: &str| -> f64 {
        let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {series}")).parse().expect("a number")
    };
    let (free, size) = (value("flotilla_disk_free_bytes"), value("flotilla_disk_size_bytes"));
    assert!(0.0 <= free && free <= size && size > 1e6, "{free} of {size}");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time").as_secs_f64();
    // The metric was read some time before `now`, depending on the machine.
    let clock = value("flotilla_clock_seconds");
    assert!((now - 600.0..=now).contains(&clock), "{clock} at {now}");
    for certificate in ["serving", "authority", "front-proxy-authority"] {
        let ends =
            value(&format!("flotilla_certificate_expiration_timestamp_seconds{{certificate=\"{certificate}\"}}"));
        assert!(ends > now + 86_400.0, "{certificate} ends at {ends}");
    }
}
