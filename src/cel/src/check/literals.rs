//! Checks literals when an expression is compiled: durations, timestamps, patterns, format strings, and whether all
//! items of a list or map have one type.

use std::collections::HashSet;

use super::Checked;
use crate::library::text_format;
use crate::source::Issues;
use crate::syntax::{Call, Expr, ExprId, ExprKind};
use crate::types::Type;
use crate::value::Value;

/// Checks the literals of a checked expression.
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
    let mut exempt = HashSet::new();
    visit(&checked.ast.root, &mut |expr| {
        if let ExprKind::Call(call) = &expr.kind
            && &*call.function == "format"
        {
            // The values to format may have different types.
            call.receiver
                .iter()
                .chain(&call.arguments)
                .for_each(|part| visit(part, &mut |part| exempt_part(part, &mut exempt)));
        }
    });
    visit(&checked.ast.root, &mut |expr| {
        if !exempt.contains(&expr.id) {
            check_list(expr, checked, issues);
        }
    });
    visit(&checked.ast.root, &mut |expr| {
        if !exempt.contains(&expr.id) {
            check_map(expr, checked, issues);
        }
    });
    check_formats(checked, issues);
}

/// Checks calls of `format` whose text and list of values are literals.
pub fn check_formats(checked: &Checked, issues: &mut Issues) {
    visit(&checked.ast.root, &mut |expr| {
        if let ExprKind::Call(call) = &expr.kind
            && &*call.function == "format"
        {
            check_format(expr, call, checked, issues);
        }
    });
}

/// The progress through a format string.
struct FormatProgress {
    used: usize,
    refused: Option<usize>,
}

fn check_format(expr: &Expr, call: &Call, checked: &Checked, issues: &mut Issues) {
    let text = call.receiver.as_ref().and_then(Expr::as_literal).and_then(Value::as_str);
    let (Some(text), Some(ExprKind::List(items))) = (text, call.arguments.first().map(|each| &each.kind)) else {
        return;
    };
    let mut reading = FormatProgress { used: 0, refused: None };
    let clause = |reading: &mut FormatProgress, index: usize, clause: text_format::Clause| {
        reading.used = index + 1;
        let of = checked.type_of(items[index].value.id);
        if clause.takes(of) {
            return Ok(());
        }
        reading.refused = Some(index);
        Err(clause.refusal(of.runtime_name()))
    };
    let read = text_format::read(text, items.len(), &mut reading, |_, _| Ok(()), clause);
    let (used, given) = (reading.used, items.len());
    let why = match read {
        Ok(()) if used == given => return,
        Ok(()) => format!("too many arguments supplied to string.format (expected {used}, got {given})"),
        Err(why) => why,
    };
    let at = reading.refused.map_or(expr.id, |index| items[index].value.id);
    issues.report(checked.ast.positions.position(at), why);
}

fn exempt_part(part: &Expr, exempt: &mut HashSet<ExprId>) {
    exempt.insert(part.id);
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
        issues.report(checked.ast.positions.position(argument.id), text);
    }
}

fn mismatch(expr: &Expr, wanted: &Type, found: &Type, checked: &Checked, issues: &mut Issues) {
    issues.report(checked.ast.positions.position(expr.id), format!("expected type '{wanted}' but found '{found}'"));
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

/// Returns whether two types are the same, ignoring type parameters.
fn equivalent(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Param(_), Type::Param(_)) => true,
        (Type::List(one), Type::List(other)) => equivalent(one, other),
        (Type::Map(one), Type::Map(other)) => equivalent(&one.0, &other.0) && equivalent(&one.1, &other.1),
        (one, other) => one == other,
    }
}

/// Calls `see` for an expression and all its parts.
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
