//! Runs CEL's own cases, and cases with the answers of Kubernetes' packages. `CEL_CASES=FOLDER` runs others with the
//! same names and form. The last line is `N of M cases agree`.
#![allow(clippy::disallowed_methods, reason = "tests start tasks of their own, and may block")]

mod cases_plain;
mod cases_schema;
mod cases_suite;

use std::path::PathBuf;

use serde::Deserialize;

/// Checks a case. The error names the difference.
type Check = fn(&serde_json::Value) -> Result<(), String>;

/// The files, and how many of their cases must agree at least.
const FILES: [(&str, usize, Check); 6] = [
    ("parsing", 188, cases_suite::check),
    ("checking", 91, cases_suite::check),
    ("comprehension", 87, cases_suite::check),
    ("conformance", 1394, cases_suite::conform),
    ("kubernetes-plain", 1851, cases_plain::check),
    ("kubernetes-schema", 1144, cases_schema::check),
];
/// How much of a disagreement is printed.
const PRINTED_CHARACTERS_MAX: usize = 600;
/// How many disagreements of a file are printed.
const PRINTED_MAX: usize = 400;

#[test]
fn cases_agree() {
    let given = std::env::var_os("CEL_CASES").map(PathBuf::from);
    let folder = given.clone().unwrap_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases")));
    // Deep expressions take more of the stack in builds without optimization.
    let run = move || {
        let (mut agree, mut all, mut low) = (0, 0, Vec::new());
        for (name, floor, check) in FILES {
            let Ok(text) = std::fs::read_to_string(folder.join(format!("{name}.jsonl"))) else { continue };
            let (mut good, mut bad) = (0, 0);
            for line in text.lines() {
                let mut reader = serde_json::Deserializer::from_str(line);
                reader.disable_recursion_limit();
                let case = serde_json::Value::deserialize(&mut reader).unwrap();
                if case["protobuf"] == true {
                    continue;
                }
                match check(&case) {
                    Ok(()) => good += 1,
                    Err(text) => {
                        bad += 1;
                        if bad <= PRINTED_MAX {
                            let label = case["name"].as_str().unwrap_or_default();
                            let line = format!("{name} {label} {}: {text}", case["expr"]);
                            println!("{}", line.chars().take(PRINTED_CHARACTERS_MAX).collect::<String>());
                        }
                    }
                }
            }
            println!("{name}: {good} of {}", good + bad);
            if good < floor {
                low.push(name);
            }
            (agree, all) = (agree + good, all + good + bad);
        }
        println!("{agree} of {all} cases agree");
        low
    };
    let low = std::thread::Builder::new().stack_size(64 << 20).spawn(run).unwrap().join().unwrap();
    assert!(given.is_some() || low.is_empty(), "fewer cases agree than before: {low:?}");
}
