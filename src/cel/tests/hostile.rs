//! Random and hostile expressions: none panics or overflows the stack, and one that costs too much is stopped.
//! `CEL_ROUNDS=N` runs more of them.
#![allow(clippy::disallowed_methods, reason = "tests start tasks of their own, and may block")]

use flotilla_cel::check::Checked;
use flotilla_cel::cost::NoSizes;
use flotilla_cel::environment::Environment;
use flotilla_cel::estimate::estimate;
use flotilla_cel::eval::Program;
use flotilla_cel::schema::Validator;
use flotilla_cel::schema::definition::{self, Judgement};
use flotilla_cel::schema::structural::Schema;
use flotilla_cel::types::Type;
use flotilla_cel::value::Value;

/// The parts of random expressions.
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

/// Compiles and evaluates an expression. Returns whether it compiled.
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
fn random_expressions_end_with_an_answer() {
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
fn mutated_expressions_end_with_an_answer() {
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

/// Makes expressions by the grammar. Most of them compile, since operands have fitting types.
struct Maker {
    numbers: Numbers,
    /// Variables of loops in scope.
    locals: usize,
}

impl Maker {
    fn any(&mut self, left: usize) -> String {
        match self.numbers.next(4) {
            0 => self.truth(left),
            1 => self.number(left),
            2 => self.text(left),
            _ => self.list(left),
        }
    }

    fn truth(&mut self, left: usize) -> String {
        let Some(left) = left.checked_sub(1) else { return "true".to_owned() };
        match self.numbers.next(8) {
            0 => format!("({} && {})", self.truth(left), self.truth(left)),
            1 => format!("({} || !{})", self.truth(left), self.truth(left)),
            2 => format!("({} < {})", self.number(left), self.number(left)),
            3 => format!("({0} == {1})", self.any(left), "dyn(x)"),
            4 => format!("{}.matches('[a-z]*{}$')", self.text(left), self.numbers.next(9)),
            5 => format!("({} in {})", self.number(left), self.list(left)),
            6 => format!("has(x.a{})", [".b", ".c.d"][self.numbers.next(2)]),
            _ => self.each(["all", "exists", "exists_one"], left, Self::truth),
        }
    }

    fn number(&mut self, left: usize) -> String {
        let Some(left) = left.checked_sub(1) else { return self.numbers.next(1000).to_string() };
        match self.numbers.next(6) {
            0 if self.locals > 0 => format!("v{}", self.numbers.next(self.locals)),
            0 | 1 => format!(
                "({} {} {})",
                self.number(left),
                ["+", "-", "*", "/", "%"][self.numbers.next(5)],
                self.number(left)
            ),
            2 => format!("size({})", self.list(left)),
            3 => format!("({} ? {} : {})", self.truth(left), self.number(left), self.number(left)),
            4 => format!("y[{}]", self.number(left)),
            _ => format!("int({})", self.text(left)),
        }
    }

    fn text(&mut self, left: usize) -> String {
        let Some(left) = left.checked_sub(1) else { return "'a\u{e9}1'".to_owned() };
        match self.numbers.next(5) {
            0 => format!("string({})", self.number(left)),
            1 => format!("({} + {})", self.text(left), self.text(left)),
            2 => format!("{}.replace('a', {})", self.text(left), self.text(left)),
            3 => format!("{}.substring({})", self.text(left), self.number(left)),
            _ => format!("{}.map(w, string(w)).join(',')", self.list(left)),
        }
    }

    /// A list of numbers.
    fn list(&mut self, left: usize) -> String {
        let Some(left) = left.checked_sub(1) else { return "y".to_owned() };
        match self.numbers.next(5) {
            0 => format!("[{}, {}]", self.number(left), self.number(left)),
            1 => format!("({} + {})", self.list(left), self.list(left)),
            2 => self.each(["map", "map", "map"], left, Self::number),
            3 => format!("{}.split('1').map(w, size(w))", self.text(left)),
            _ => self.each(["filter", "filter", "filter"], left, Self::truth),
        }
    }

    fn each(&mut self, of: [&str; 3], left: usize, body: fn(&mut Self, usize) -> String) -> String {
        let (range, name) = (self.list(left), of[self.numbers.next(3)]);
        let variable = format!("v{}", self.locals);
        self.locals += 1;
        let body = body(self, left);
        self.locals -= 1;
        format!("{range}.{name}({variable}, {body})")
    }
}

#[test]
fn expressions_of_the_grammar_end_with_an_answer() {
    let rounds: usize = std::env::var("CEL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1000);
    let (environment, mut compiled) = (environment(), 0);
    let mut maker = Maker { numbers: Numbers(0x9e37_79b9_7f4a_7c15), locals: 0 };
    for round in 0..rounds {
        let text = maker.any(1 + round % 5);
        compiled += usize::from(run(&text, &environment));
    }
    assert!(compiled * 10 > rounds * 9, "{compiled} of {rounds} compiled");
}

#[test]
fn deep_and_long_expressions_end_with_an_answer() {
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
fn a_loop_that_costs_too_much_is_stopped() {
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

/// Prints how often per second a simple rule is evaluated; run it on request, in an optimized build.
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

/// Prints how long it takes to check the rules of a definition, and to compile them for objects; run it likewise.
#[test]
#[ignore = "measures"]
fn many_rules_are_compiled_quickly() {
    let property = |at: usize| match at % 3 {
        0 => flotilla_proto::value!({"type": "integer"}),
        1 => flotilla_proto::value!({"type": "string", "maxLength": 63}),
        _ => flotilla_proto::value!({"type": "array", "maxItems": 16, "items": {"type": "object", "properties": {
            "name": {"type": "string", "maxLength": 63}, "port": {"type": "integer"}}}}),
    };
    let mut properties = flotilla_proto::value!({});
    (0..300).for_each(|at| properties.set_at(&[&format!("p{at}")], property(at)));
    let rule = |at: usize| {
        let (number, text, list) = (at % 100 * 3, at % 100 * 3 + 1, at % 100 * 3 + 2);
        let rule = format!(
            "!has(self.p{list}) || self.p{list}.all(x, x.port <= self.p{number} && x.name.startsWith(self.p{text}))"
        );
        flotilla_proto::value!({"rule": rule, "message": "no"})
    };
    let rules: Vec<_> = (0..200).map(rule).collect();
    let spec = flotilla_proto::value!({"type": "object", "properties": properties, "x-kubernetes-validations": rules});
    let schema = Schema::of(&flotilla_proto::value!({"type": "object", "properties": {"spec": spec}}));
    for _ in 0..5 {
        let began = std::time::Instant::now();
        let (found, cost) = definition::check(&schema, "", Judgement::default());
        let checked = began.elapsed();
        let validator = Validator::new(&schema);
        println!(
            "{} wrong, cost {cost}: checked in {checked:?}, compiled in {:?}",
            found.len(),
            began.elapsed() - checked
        );
        assert!(validator.is_some());
    }
}
