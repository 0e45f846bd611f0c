//! Runs the cases that decide: CEL's own, and what Kubernetes' packages answered. `CEL_CASES=FOLDER` takes others of the
//! same names and form. The last line is `N of M cases agree`.

mod cases_plain;
mod cases_suite;

use std::path::PathBuf;

/// The files, and how many of their cases must agree at least.
const FILES: [(&str, usize, fn(&serde_json::Value) -> Result<(), String>); 5] = [
    ("parsing", 0, cases_suite::check),
    ("checking", 0, cases_suite::check),
    ("comprehension", 0, cases_suite::check),
    ("conformance", 0, cases_suite::conform),
    ("kubernetes-plain", 0, cases_plain::check),
];
/// How many disagreements of a file are printed.
const PRINTED_MAX: usize = 40;

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
                let case: serde_json::Value = serde_json::from_str(line).unwrap();
                if case["protobuf"] == true {
                    continue;
                }
                match check(&case) {
                    Ok(()) => good += 1,
                    Err(text) => {
                        bad += 1;
                        if bad <= PRINTED_MAX {
                            let label = case["name"].as_str().unwrap_or_default();
                            println!("{name} {label} {}: {text}", case["expr"]);
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
