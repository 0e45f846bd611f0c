//! Random and hostile expressions: nothing panics, nothing overflows the stack, and what costs too much is stopped.
//! `CEL_ROUNDS=N` runs more of them.

use flotilla_cel::check::Checked;
use flotilla_cel::cost::{NoSizes, estimate};
use flotilla_cel::environment::Environment;
use flotilla_cel::eval::Program;
use flotilla_cel::types::Type;
use flotilla_cel::value::Value;

/// What random expressions are made of.
const WORDS: [&str; 58] = [
    "x",
    "y",
    "1",
    "-1",
    "0x1f",
    "2u",
    "1.5",
    "1e400",
    "'a'",
    "\"\\xff\"",
    "b'z'",
    "true",
    "false",
    "null",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ".",
    ".?",
    "[?",
    "?",
    ":",
    ",",
    "+",
    "-",
    "*",
    "/",
    "%",
    "!",
    "==",
    "!=",
    "<",
    ">=",
    "&&",
    "||",
    " in ",
    ".all(v, ",
    ".exists(v, v == 1)",
    ".map(v, v)",
    ".filter(v, true)",
    "has(x.a)",
    "size(",
    "string(",
    "int(",
    "dyn(",
    "timestamp('2020-01-01T00:00:00Z')",
    "duration('1s')",
    ".matches('a+')",
    ".startsWith('a')",
    "optional.of(",
    "'''",
    "\\",
    "\u{1f601}",
    "\n",
    "`a`",
];

/// Numbers that look random, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

fn environment() -> Environment {
    Environment::kubernetes(35).with_variable("x", Type::Dyn).with_variable("y", Type::list(Type::Int))
}

/// Compiles and evaluates. Gives whether it compiled.
fn run(text: &str, environment: &Environment) -> bool {
    let checked = match Checked::of(text, environment) {
        Ok(checked) => checked,
        Err(issues) => {
            assert!(!issues.is_empty(), "no error is told of {text}");
            return false;
        }
    };
    estimate(&checked, &NoSizes);
    let Ok(program) = Program::new(&checked, environment) else { return true };
    let tree = flotilla_proto::value!({"a": [1, "b", null], "b": {"c": true}});
    let values = [Value::of_tree(&tree), Value::list((0..10).map(Value::Int).collect())];
    let evaluation = program.evaluate(&values, 100_000);
    assert!(evaluation.outcome.is_err() || evaluation.cost <= 100_000, "{text} cost {}", evaluation.cost);
    true
}

#[test]
fn random_expressions_end_in_an_answer() {
    let rounds: usize = std::env::var("CEL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(4000);
    let (environment, mut numbers, mut compiled) = (environment(), Numbers(0x2545_f491_4f6c_dd1d), 0);
    for _ in 0..rounds {
        let length = 1 + numbers.next(14);
        let text: String = (0..length).map(|_| WORDS[numbers.next(WORDS.len())]).collect();
        compiled += usize::from(run(&text, &environment));
    }
    assert!(compiled > 0, "none of {rounds} compiled");
}

#[test]
fn changed_expressions_end_in_an_answer() {
    let rounds: usize = std::env::var("CEL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(4000);
    let rule = "has(x.a) && x.a.all(v, y.exists(w, w == v || -1 < size(string(w)))) ? [x.?b.orValue({'k': 2u})] : [{}]";
    let (environment, mut numbers) = (environment(), Numbers(88_172_645_463_325_252));
    for _ in 0..rounds {
        let mut text: Vec<char> = rule.chars().collect();
        for _ in 0..=numbers.next(3) {
            let (at, from) = (numbers.next(text.len()), numbers.next(text.len()));
            match numbers.next(3) {
                0 => text[at] = text[from],
                1 => drop(text.remove(at)),
                _ => text.insert(at, text[from]),
            }
        }
        run(&text.into_iter().collect::<String>(), &environment);
    }
}

#[test]
fn deep_and_long_expressions_end_in_an_answer() {
    // Builds without optimization take several times as much of the stack.
    let tests = || {
        let environment = environment();
        for depth in [200, 249, 250, 5000] {
            let nested = |open: &str, close: &str| format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let parentheses = run(&nested("(", ")"), &environment);
            assert_eq!(parentheses, depth < 250, "of {depth} parentheses");
            for (open, close) in
                [("[", "]"), ("-[", "]"), ("{'a': ", "}"), ("dyn(", ")"), ("[1].map(v, ", ")"), ("1 + (", ")")]
            {
                run(&nested(open, close), &environment);
            }
            run(&format!("x{}", ".a".repeat(depth)), &environment);
            run(&format!("x{}", "[0]".repeat(depth)), &environment);
            run(&vec!["1"; depth].join(" + "), &environment);
            run(&format!("{}true", "!".repeat(depth)), &environment);
            run(&format!("{}true", "true ? true : ".repeat(depth)), &environment);
        }
        let long = vec!["x.a[0] == 1"; 6500].join(" || ");
        assert!(run(&long, &environment));
        assert!(!run(&"(".repeat(99_999), &environment));
        assert!(!run(&"1 +".repeat(33_333), &environment));
        assert!(!run(&"-1[".repeat(33_333), &environment));
        assert!(!run(&" ".repeat(100_001), &environment));
    };
    std::thread::Builder::new().stack_size(4 << 20).spawn(tests).unwrap().join().unwrap();
}

#[test]
fn a_loop_that_is_too_dear_is_stopped() {
    let text = "y.all(a, y.all(b, y.all(c, y.all(d, y.all(e, y.all(f, true))))))";
    let environment = environment();
    let checked = Checked::of(text, &environment).unwrap();
    let program = Program::new(&checked, &environment).unwrap();
    let values = [Value::Null, Value::list((0..10).map(Value::Int).collect())];
    let evaluation = program.evaluate(&values, 10_000);
    let error = evaluation.outcome.unwrap_err();
    assert_eq!(error.to_string(), "operation cancelled: actual cost limit exceeded");
    assert_eq!(evaluation.cost, 10_001);
}

/// How many evaluations a second a simple rule has: printed, where it is asked for, in a build with optimization.
#[test]
#[ignore = "measures"]
fn simple_rules_are_evaluated_quickly() {
    let text = "x.replicas <= x.maxReplicas && x.name.startsWith('a')";
    let environment = environment();
    let checked = Checked::of(text, &environment).unwrap();
    let program = Program::new(&checked, &environment).unwrap();
    let tree = flotilla_proto::value!({"name": "abc", "replicas": 3, "maxReplicas": 10});
    let values = [Value::of_tree(&tree), Value::Null];
    let start = std::time::Instant::now();
    const COUNT: u32 = 2_000_000;
    for _ in 0..COUNT {
        assert!(matches!(program.evaluate(&values, 1_000_000).outcome, Ok(Value::Bool(true))));
    }
    println!("{:.0} evaluations a second", f64::from(COUNT) / start.elapsed().as_secs_f64());
}
