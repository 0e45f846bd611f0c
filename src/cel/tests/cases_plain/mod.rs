//! Kubernetes' answers to expressions with declared variables.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flotilla_cel::check::Checked;
use flotilla_cel::cost::NoSizes;
use flotilla_cel::environment::Environment;
use flotilla_cel::estimate::estimate;
use flotilla_cel::eval::Program;
use flotilla_cel::types::Type;
use flotilla_cel::value::{Duration, Timestamp, Value};
use serde_json::{Value as Json, json};

pub fn same(what: &str, wanted: &Json, found: &Json) -> Result<(), String> {
    if wanted == found { Ok(()) } else { Err(format!("{what} is {found}, wanted {wanted}")) }
}

pub fn check(case: &Json) -> Result<(), String> {
    let answer = &case["answer"];
    if answer["panic"] != Json::Null {
        return Ok(());
    }
    let mut environment = Environment::kubernetes(35);
    let mut names = Vec::new();
    for (name, of) in case["env"].as_object().into_iter().flatten() {
        environment = environment.with_variable(name, type_of(of.as_str().unwrap()));
        names.push((name.clone(), of.as_str().unwrap().to_owned()));
    }
    let text = case["expr"].as_str().unwrap();
    let checked = match Checked::of(text, &environment) {
        Ok(checked) => checked,
        Err(issues) => return same("compile error", &answer["compileError"], &json!(issues)),
    };
    same("compile error", &answer["compileError"], &Json::Null)?;
    same("type", &answer["outputType"], &json!(checked.output().declared_name()))?;
    let cost = estimate(&checked, &NoSizes);
    same("static cost", &answer["staticCost"], &json!({"min": cost.min.to_string(), "max": cost.max.to_string()}))?;
    let program = match Program::new(&checked, &environment) {
        Ok(program) => program,
        Err(error) => return same("program error", &answer["programError"], &json!(error.to_string())),
    };
    same("program error", &answer["programError"], &Json::Null)?;
    if answer["notEvaluated"] != Json::Null {
        return Ok(());
    }
    let mut values = Vec::new();
    for (name, of) in &names {
        let given = &case["vars"][name];
        values.push(match case["vars"].get(name) {
            None => None,
            Some(_) => Some(value_of(given, of)?),
        });
    }
    let evaluation = program.evaluate(values.as_slice(), 1_000_000);
    match &evaluation.outcome {
        Ok(value) => {
            same("error", &answer["runtimeError"], &Json::Null)?;
            same("result", &answer["result"], &result_of(value))?;
        }
        Err(error) => same("error", &answer["runtimeError"], &json!(error.to_string()))?,
    }
    same("cost", &answer["runtimeCost"], &json!(evaluation.cost.to_string()))
}

fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, char) in text.char_indices() {
        match char {
            '<' => depth += 1,
            '>' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

fn generic(text: &str) -> (&str, Vec<&str>) {
    match text.split_once('<') {
        Some((name, rest)) => (name, split(rest.strip_suffix('>').unwrap())),
        None => (text, Vec::new()),
    }
}

fn type_of(text: &str) -> Type {
    let (name, params) = generic(text);
    match (name, &params[..]) {
        ("dyn", _) => Type::Dyn,
        ("bool", _) => Type::Bool,
        ("int", _) => Type::Int,
        ("uint", _) => Type::Uint,
        ("double", _) => Type::Double,
        ("string", _) => Type::String,
        ("bytes", _) => Type::Bytes,
        ("timestamp", _) => Type::Timestamp,
        ("duration", _) => Type::Duration,
        ("list", [item]) => Type::list(type_of(item)),
        ("map", [key, value]) => Type::map(type_of(key), type_of(value)),
        ("optional", [of]) => Type::optional(type_of(of)),
        ("quantity", _) => Type::object("kubernetes.Quantity"),
        ("url", _) => Type::object("kubernetes.URL"),
        ("semver", _) => Type::object("kubernetes.Semver"),
        ("ip", _) => Type::opaque("net.IP", vec![]),
        ("cidr", _) => Type::opaque("net.CIDR", vec![]),
        ("authorizer", _) => Type::object("kubernetes.authorization.Authorizer"),
        _ => panic!("unknown type {text}"),
    }
}

fn evaluated(expression: &str) -> Result<Value<'static>, String> {
    let environment = Environment::kubernetes(35);
    let checked = Checked::of(expression, &environment)?;
    let program = Program::new(&checked, &environment).map_err(|error| error.to_string())?;
    // These few values live as long as the test.
    let program: &'static Program = Box::leak(Box::new(program));
    program.evaluate(&[] as &[Value<'_>; 0], u64::MAX).outcome.map_err(|error| error.to_string())
}

fn text_or_number<T: std::str::FromStr>(given: &Json) -> Option<T> {
    given.as_str().map_or_else(|| given.to_string(), str::to_owned).parse().ok()
}

fn value_of(given: &Json, of: &str) -> Result<Value<'static>, String> {
    let (name, params) = generic(of);
    let text = given.as_str().unwrap_or_default();
    Ok(match (name, &params[..]) {
        ("dyn", _) => plain(given),
        ("bool", _) => Value::Bool(given.as_bool().unwrap()),
        ("int", _) => Value::Int(text_or_number(given).ok_or("int")?),
        ("uint", _) => Value::Uint(text_or_number(given).ok_or("uint")?),
        ("double", _) => Value::Double(match text {
            "NaN" => f64::NAN,
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            _ => text_or_number(given).ok_or("double")?,
        }),
        ("string", _) => Value::string(text),
        ("bytes", _) => Value::bytes(base64(text)),
        ("list", [item]) => Value::list(
            given.as_array().ok_or("list")?.iter().map(|each| value_of(each, item)).collect::<Result<_, _>>()?,
        ),
        ("map", [key, value]) => {
            let mut entries = Vec::new();
            for (name, each) in given.as_object().ok_or("map")? {
                entries.push((value_of(&json!(name), key)?, value_of(each, value)?));
            }
            Value::map(entries)
        }
        ("optional", _) if given.is_null() => Value::none(),
        ("optional", [of]) => Value::some(value_of(given, of)?),
        (function, _) => evaluated(&format!("{function}({given})"))?,
    })
}

fn plain(given: &Json) -> Value<'static> {
    match given {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Value::Int(number),
            (None, number) => Value::Double(number.unwrap()),
        },
        Json::String(text) => Value::string(text.as_str()),
        Json::Array(items) => Value::list(items.iter().map(plain).collect()),
        Json::Object(map) => Value::map(map.iter().map(|(key, value)| (Value::string(key.as_str()), plain(value)))),
    }
}

pub fn base64(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap_or_default()
}

fn result_of(value: &Value<'_>) -> Json {
    let of = value.type_of().runtime_name().to_owned();
    match value {
        Value::Null => json!({"type": of}),
        Value::Optional(None) => json!({"type": of, "none": true}),
        other => json!({"type": of, "value": shown(other)}),
    }
}

fn shown(value: &Value<'_>) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(truth) => json!(truth),
        Value::Int(number) => json!(number.to_string()),
        Value::Uint(number) => json!(number.to_string()),
        Value::Double(number) if number.is_infinite() => json!(if *number > 0.0 { "Infinity" } else { "-Infinity" }),
        Value::Double(number) => json!(flotilla_cel::double_text(*number)),
        Value::String(text) => json!(&**text),
        Value::Bytes(bytes) => json!(STANDARD.encode(bytes)),
        Value::Timestamp(time) => json!(time_text(*time)),
        Value::Duration(span) => json!(span_text(*span)),
        Value::List(list) => Json::Array(list.iter().map(|item| result_of(&item.unwrap())).collect()),
        Value::Map(map) => {
            let mut pairs: Vec<Json> =
                map.iter().map(|(key, value)| json!([result_of(&key), result_of(&value.unwrap())])).collect();
            pairs.sort_by_key(|pair| pair[0].to_string());
            Json::Array(pairs)
        }
        Value::Type(of) => json!(of.declared_name()),
        Value::Optional(None) => json!("none"),
        Value::Optional(Some(value)) => result_of(value),
        Value::Opaque(value) => json!(value.text()),
    }
}

fn time_text(time: Timestamp) -> String {
    time.at_offset(0).to_string()
}

fn span_text(span: Duration) -> String {
    span.nanos().to_string()
}
