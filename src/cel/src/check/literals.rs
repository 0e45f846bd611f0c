//! Literals that are looked at when an expression is compiled: durations, timestamps, patterns, and whether all items
//! of a list or a map are of one type.

use super::Checked;
use crate::source::Issues;
use crate::syntax::{Call, Expr, ExprKind};
use crate::types::Type;
use crate::value::Value;

/// Looks at the literals of a checked expression.
pub fn check_literals(checked: &Checked, issues: &mut Issues) {
    for function in ["duration", "timestamp", "matches"] {
        visit(&checked.ast.root, &mut |expr| {
            if let ExprKind::Call(call) = &expr.kind
                && *call.function == *function
            {
                check_argument(call, checked, issues);
            }
        });
    }
    visit(&checked.ast.root, &mut |expr| check_list(expr, checked, issues));
    visit(&checked.ast.root, &mut |expr| check_map(expr, checked, issues));
}

fn check_argument(call: &Call, checked: &Checked, issues: &mut Issues) {
    let Some((argument, value)) = call.arguments.first().and_then(|each| Some((each, each.as_literal()?))) else {
        return;
    };
    let is_right = match (&*call.function, value) {
        ("matches", Value::String(pattern)) => flotilla_golang::regexp::Regexp::check(pattern).is_ok(),
        ("duration", value) => crate::library::standard::convert(value, &Type::Duration).is_ok(),
        ("timestamp", value) => crate::library::standard::convert(value, &Type::Timestamp).is_ok(),
        _ => true,
    };
    if !is_right {
        let text = format!("invalid {} argument", call.function);
        issues.report(checked.ast.places.place(argument.id), text);
    }
}

fn mismatch(expr: &Expr, wanted: &Type, found: &Type, checked: &Checked, issues: &mut Issues) {
    issues.report(checked.ast.places.place(expr.id), format!("expected type '{wanted}' but found '{found}'"));
}

fn item_type<'c>(checked: &'c Checked, expr: &Expr, is_optional: bool) -> &'c Type {
    let of = checked.type_of(expr.id);
    if is_optional { of.optional_of().unwrap_or(of) } else { of }
}

fn check_list(expr: &Expr, checked: &Checked, issues: &mut Issues) {
    let ExprKind::List(items) = &expr.kind else { return };
    let mut of: Option<&Type> = None;
    for item in items {
        let found = item_type(checked, &item.value, item.is_optional);
        match of {
            None => of = Some(found),
            Some(of) if !equivalent(of, found) => return mismatch(&item.value, of, found, checked, issues),
            Some(_) => {}
        }
    }
}

fn check_map(expr: &Expr, checked: &Checked, issues: &mut Issues) {
    let ExprKind::Map(entries) = &expr.kind else { return };
    let mut of: Option<(&Type, &Type)> = None;
    for entry in entries {
        let key = checked.type_of(entry.key.id);
        let value = item_type(checked, &entry.value, entry.is_optional);
        let Some((keys, values)) = of else {
            of = Some((key, value));
            continue;
        };
        if !equivalent(keys, key) {
            mismatch(&entry.key, keys, key, checked, issues);
        }
        if !equivalent(values, value) {
            mismatch(&entry.value, values, value, checked, issues);
        }
    }
}

/// Whether two types are the same, whatever type parameters stand for.
fn equivalent(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Param(_), Type::Param(_)) => true,
        (Type::List(one), Type::List(other)) => equivalent(one, other),
        (Type::Map(one), Type::Map(other)) => equivalent(&one.0, &other.0) && equivalent(&one.1, &other.1),
        (one, other) => one == other,
    }
}

/// Looks at an expression and all its parts.
fn visit(expr: &Expr, see: &mut impl FnMut(&Expr)) {
    see(expr);
    match &expr.kind {
        ExprKind::Select(select) => visit(&select.operand, see),
        ExprKind::Call(call) => call.receiver.iter().chain(&call.arguments).for_each(|each| visit(each, see)),
        ExprKind::List(items) => items.iter().for_each(|item| visit(&item.value, see)),
        ExprKind::Map(entries) => entries.iter().for_each(|entry| {
            visit(&entry.key, see);
            visit(&entry.value, see);
        }),
        ExprKind::Object(_, fields) => fields.iter().for_each(|field| visit(&field.value, see)),
        ExprKind::Loop(each) => {
            [&each.range, &each.init, &each.condition, &each.step, &each.result]
                .iter()
                .for_each(|each| visit(each, see));
        }
        ExprKind::Unspecified | ExprKind::Literal(_) | ExprKind::Ident(_) => {}
    }
}
