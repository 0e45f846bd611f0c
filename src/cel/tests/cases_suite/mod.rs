//! The cases of CEL's own suites.

use std::sync::Arc;

use flotilla_cel::check::{check as check_types, check_formats};
use flotilla_cel::environment::{Base, Environment, OverloadDecl};
use flotilla_cel::eval::Program;
use flotilla_cel::library::LIBRARIES;
use flotilla_cel::limits::{PARSER, ParserBounds};
use flotilla_cel::source::{Issues, Source};
use flotilla_cel::syntax::{Ast, Dialect, Expr, ExprKind, debug_text, parse};
use flotilla_cel::types::{Signature, Type};
use flotilla_cel::value::{Duration, Timestamp, Value, equal};
use serde_json::{Value as Json, json};

use crate::cases_plain::{base64, same};

/// Errors of cases that were recorded without comparisons of different number types.
const NUMBERS: [&str; 4] = [
    "'_<_' applied to '(int, double)'",
    "'_<=_' applied to '(int, double)'",
    "'_>_' applied to '(int, double)'",
    "'_>=_' applied to '(int, double)'",
];

/// Checks a case of parsing or checking. Its environment has the standard library, and those of strings and optionals.
pub fn check(case: &Json) -> Result<(), String> {
    let standard: Vec<_> = LIBRARIES
        .iter()
        .copied()
        .filter(|library| matches!(library.name, "standard" | "strings" | "optional"))
        .collect();
    let bounds = ParserBounds { depth: 32, recoveries: 4, recovery_tokens: 4 };
    let dialect = Dialect {
        macros: true,
        optional_syntax: false,
        two_variables: false,
        bind: false,
        quoted_names: false,
        exists_one: true,
        sort_by: false,
        bounds,
    };
    let mut base = Base::new(&standard, dialect);
    let has_numbers = case["checkError"].as_str().is_some_and(|text| NUMBERS.iter().any(|of| text.contains(of)));
    base.compares_numbers = !has_numbers;
    let mut environment = Environment::new(Arc::new(base));
    // The declarations of upstream's test of the checker.
    for (name, of) in [
        ("is", Type::String),
        ("ii", Type::Int),
        ("iu", Type::Uint),
        ("iz", Type::Bool),
        ("ib", Type::Bytes),
        ("id", Type::Double),
        ("ix", Type::Null),
    ] {
        environment = environment.with_variable(name, of);
    }
    for (name, id, signature) in [("fg_s", "fg_s_0", "(): string"), ("fi_s_s", "fi_s_s_0", "string.(): string")] {
        let overload = OverloadDecl::declared(id, Signature::read(signature).unwrap());
        environment = environment.with_function(name, vec![overload]);
    }
    let environment = declared(environment, case);
    compare(case, &environment).map(|_| ())
}

/// Checks a case of the conformance tests. Its environment has all libraries.
pub fn conform(case: &Json) -> Result<(), String> {
    let macros = case["disableMacros"] != true;
    // Two cases were recorded without optional values. Their errors show it.
    let optional_syntax = !case["checkError"].as_str().is_some_and(|text| text.contains("unsupported syntax"));
    // Some cases were recorded without loops with two variables.
    let two_variables = !case["checkError"].as_str().is_some_and(|text| {
        ["all", "exists", "existsOne", "transformList", "transformMap"]
            .iter()
            .any(|name| text.contains(&format!("undeclared reference to '{name}'")))
    });
    let (bind, quoted_names) = (true, true);
    let dialect = Dialect {
        macros,
        optional_syntax,
        two_variables,
        bind,
        exists_one: true,
        sort_by: true,
        quoted_names,
        bounds: PARSER,
    };
    let environment = declared(Environment::new(Arc::new(Base::new(LIBRARIES, dialect))), case);
    let program = if case["disableCheck"] == true {
        let source = Source::new(case["expr"].as_str().unwrap());
        let mut issues = Issues::default();
        let ast = parse(&source, environment.dialect(), &mut issues).ok_or_else(|| issues.show(&source))?;
        Program::unchecked(&ast.root, &environment)
    } else {
        match compare(case, &environment)? {
            Some(checked) if case["checkOnly"] != true => Program::new(&checked, &environment),
            _ => return Ok(()),
        }
    };
    let program = match program {
        Ok(program) => program,
        Err(_) if case["evalError"] != Json::Null => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    let values: Vec<Option<Value<'_>>> =
        environment.variables().iter().map(|variable| value_of(&case["bindings"][&*variable.name]["value"])).collect();
    let outcome = program.evaluate(values.as_slice(), u64::MAX).outcome;
    let wanted = if case["typedResult"] == Json::Null { &case["value"] } else { &case["typedResult"]["result"] };
    match (outcome, case["evalError"] != Json::Null) {
        (Err(_), true) => Ok(()),
        (Ok(value), true) => Err(format!("{value:?}, wanted an error")),
        (Err(error), false) => Err(error.to_string()),
        (Ok(value), false) => {
            let wanted = if wanted.is_null() { Some(Value::Bool(true)) } else { value_of(wanted) };
            let Some(wanted) = wanted else { return Err("no value to compare with".to_owned()) };
            let is_nan = |value: &Value<'_>| matches!(value, Value::Double(number) if number.is_nan());
            let is_same = value.type_of().runtime_name() == wanted.type_of().runtime_name()
                && (equal(&value, &wanted).unwrap_or(false) || is_nan(&value) && is_nan(&wanted));
            if is_same { Ok(()) } else { Err(format!("{value:?}, wanted {wanted:?}")) }
        }
    }
}

fn compare(case: &Json, environment: &Environment) -> Result<Option<flotilla_cel::check::Checked>, String> {
    let text = case["expr"].as_str().unwrap();
    let error = case["checkError"].as_str().unwrap_or_default();
    let label = error.strip_prefix("ERROR: ").and_then(|rest| rest.split(':').next());
    let name = label.unwrap_or("<input>");
    let source = Source::named(text, name);
    let mut issues = Issues::default();
    let ast = parse(&source, environment.dialect(), &mut issues);
    if let (Some(ast), Some(wanted)) = (&ast, case["ast"].as_str()) {
        same("tree", &json!(wanted), &json!(ast_text(ast)))?;
    }
    let checked = ast.map(|ast| check_types(ast, environment, &mut issues));
    if let Some(checked) = checked.as_ref().filter(|_| issues.is_empty() && environment.dialect().optional_syntax) {
        check_formats(checked, &mut issues);
    }
    if !issues.is_empty() || !error.is_empty() {
        same("error", &json!(error), &json!(issues.show(&source)))?;
        return Ok(None);
    }
    let checked = checked.unwrap();
    if let Some(of) = case["type"].as_str() {
        same("type", &json!(of), &json!(checked.output().to_string()))?;
    }
    if let Some(wanted) = case["checkedAst"].as_str() {
        same("checked tree", &json!(wanted), &json!(checked.debug_text()))?;
    }
    Ok(Some(checked))
}

fn ast_text(ast: &Ast) -> String {
    debug_text(&ast.root, &|expr| expr.map_or_else(|| "^#*expr.Expr_CreateStruct_Entry#".to_owned(), kind_text))
}

fn kind_text(expr: &Expr) -> String {
    let kind = match &expr.kind {
        ExprKind::Literal(value) => match value {
            Value::Bool(_) => "Constant_BoolValue",
            Value::Int(_) => "Constant_Int64Value",
            Value::Uint(_) => "Constant_Uint64Value",
            Value::Double(_) => "Constant_DoubleValue",
            Value::String(_) => "Constant_StringValue",
            Value::Bytes(_) => "Constant_BytesValue",
            _ => "Constant_NullValue",
        },
        ExprKind::Ident(_) => "Expr_IdentExpr",
        ExprKind::Select(_) => "Expr_SelectExpr",
        ExprKind::Call(_) => "Expr_CallExpr",
        ExprKind::List(_) => "Expr_ListExpr",
        ExprKind::Map(_) | ExprKind::Object(..) => "Expr_StructExpr",
        ExprKind::Loop(_) => "Expr_ComprehensionExpr",
        ExprKind::Unspecified => return String::new(),
    };
    format!("^#*expr.{kind}#")
}

fn declared(mut environment: Environment, case: &Json) -> Environment {
    environment.container = case["container"].as_str().unwrap_or_default().to_owned();
    for declaration in case["typeEnv"].as_array().into_iter().flatten() {
        let name = declaration["name"].as_str().unwrap();
        if let Some(function) = declaration.get("function") {
            let overloads = function["overloads"].as_array().unwrap().iter().map(|overload| {
                let params = overload["params"].as_array().into_iter().flatten();
                let signature = Signature {
                    is_member: overload["isInstanceFunction"] == true,
                    arguments: params.map(type_of).collect(),
                    result: type_of(&overload["resultType"]),
                };
                OverloadDecl::declared(overload["overloadId"].as_str().unwrap(), signature)
            });
            environment = environment.with_function(name, overloads.collect());
        } else {
            environment = environment.with_variable(name, type_of(&declaration["ident"]["type"]));
        }
    }
    environment
}

fn type_of(json: &Json) -> Type {
    let Some((kind, of)) = json.as_object().and_then(|map| map.iter().next()) else { return Type::Dyn };
    match (kind.as_str(), of.as_str()) {
        ("primitive", Some(name)) => primitive(name),
        ("wrapper", Some(name)) => Type::wrapper(primitive(name)),
        ("wellKnown", Some("TIMESTAMP")) => Type::Timestamp,
        ("wellKnown", Some("DURATION")) => Type::Duration,
        ("null", _) => Type::Null,
        ("typeParam", Some(name)) => Type::param(name),
        ("messageType", Some(name)) => Type::object(name),
        ("listType", _) => Type::list(type_of(&of["elemType"])),
        ("mapType", _) => Type::map(type_of(&of["keyType"]), type_of(&of["valueType"])),
        ("type", _) => Type::type_of(type_of(of)),
        ("abstractType", _) => {
            let params = of["parameterTypes"].as_array().into_iter().flatten().map(type_of).collect();
            Type::opaque(of["name"].as_str().unwrap(), params)
        }
        _ => Type::Dyn,
    }
}

fn primitive(name: &str) -> Type {
    match name {
        "BOOL" => Type::Bool,
        "INT64" => Type::Int,
        "UINT64" => Type::Uint,
        "DOUBLE" => Type::Double,
        "STRING" => Type::String,
        _ => Type::Bytes,
    }
}

fn value_of(json: &Json) -> Option<Value<'static>> {
    let (kind, of) = json.as_object()?.iter().next()?;
    let text = of.as_str().unwrap_or_default();
    Some(match kind.as_str() {
        "nullValue" => Value::Null,
        "boolValue" => Value::Bool(of.as_bool()?),
        "int64Value" => Value::Int(text.parse().ok()?),
        "uint64Value" => Value::Uint(text.parse().ok()?),
        "doubleValue" => Value::Double(match text {
            "NaN" => f64::NAN,
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            _ => of.as_f64()?,
        }),
        "stringValue" => Value::string(text),
        "bytesValue" => Value::bytes(base64(text)),
        "typeValue" => Value::Type(type_named(text)),
        "listValue" => {
            let items = of["values"].as_array().into_iter().flatten();
            Value::list(items.map(value_of).collect::<Option<_>>()?)
        }
        "mapValue" => {
            let entries = of["entries"].as_array().into_iter().flatten();
            let read = |entry: &Json| Some((value_of(&entry["key"])?, value_of(&entry["value"])?));
            Value::map(entries.map(read).collect::<Option<Vec<_>>>()?)
        }
        "objectValue" => object(of)?,
        _ => return None,
    })
}

fn object(of: &Json) -> Option<Value<'static>> {
    let text = of["value"].as_str().unwrap_or_default();
    match of["@type"].as_str()? {
        "type.googleapis.com/google.protobuf.Duration" => {
            flotilla_cel::library::standard::parse_duration(text).map(|span: Duration| Value::Duration(span))
        }
        "type.googleapis.com/google.protobuf.Timestamp" => {
            flotilla_cel::library::standard::parse_timestamp(text).map(|time: Timestamp| Value::Timestamp(time))
        }
        _ => None,
    }
}

fn type_named(name: &str) -> Type {
    match name {
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "null_type" => Type::Null,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "type" => Type::Type(None),
        "google.protobuf.Timestamp" => Type::Timestamp,
        "google.protobuf.Duration" => Type::Duration,
        other => Type::opaque(other, vec![]),
    }
}
