//! Formats syntax trees as text, in the form of cel-go's tests.

use flotilla_golang::strconv::{quote, quote_bytes};

use super::ast::{Entry, Expr, ExprKind, Loop};
use crate::value::Value;

/// Formats a tree. `adorn` returns the text after each part. After an entry of a map or a field of an object it gets
/// `None`.
pub fn debug_text(expr: &Expr, adorn: &dyn Fn(Option<&Expr>) -> String) -> String {
    let mut writer = DebugWriter { text: String::new(), indent: 0, at_start: true, adorn };
    writer.expr(expr);
    writer.text
}

struct DebugWriter<'a> {
    text: String,
    indent: usize,
    at_start: bool,
    adorn: &'a dyn Fn(Option<&Expr>) -> String,
}

impl DebugWriter<'_> {
    fn put(&mut self, text: &str) {
        if std::mem::take(&mut self.at_start) {
            self.text.extend(std::iter::repeat_n("  ", self.indent));
        }
        self.text.push_str(text);
    }

    fn line(&mut self) {
        self.text.push('\n');
        self.at_start = true;
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Unspecified => {}
            ExprKind::Literal(value) => self.put(&literal(value)),
            ExprKind::Ident(name) => self.put(name),
            ExprKind::Select(select) => {
                self.expr(&select.operand);
                self.put(".");
                self.put(&select.field);
                if select.is_test {
                    self.put("~test-only~");
                }
            }
            ExprKind::Call(call) => {
                if let Some(receiver) = &call.receiver {
                    self.expr(receiver);
                    self.put(".");
                }
                self.put(&call.function);
                self.put("(");
                if !call.arguments.is_empty() {
                    self.indent += 1;
                    self.line();
                    self.separated(&call.arguments, Self::expr);
                    self.indent -= 1;
                    self.line();
                }
                self.put(")");
            }
            ExprKind::List(items) => self.block("[", "]", items, |this, item| this.expr(&item.value)),
            ExprKind::Map(entries) => self.block("{", "}", entries, |this, entry| {
                this.optional(entry);
                this.expr(&entry.key);
                this.put(":");
                this.expr(&entry.value);
                this.adorn_entry();
            }),
            ExprKind::Object(name, fields) => self.block(&format!("{name}{{"), "}", fields, |this, field| {
                this.optional(field);
                this.put(&field.key);
                this.put(":");
                this.expr(&field.value);
                this.adorn_entry();
            }),
            ExprKind::Loop(each) => self.each(each),
        }
        let adornment = (self.adorn)(Some(expr));
        self.put(&adornment);
    }

    fn adorn_entry(&mut self) {
        let adornment = (self.adorn)(None);
        self.put(&adornment);
    }

    fn optional<K>(&mut self, entry: &Entry<K>) {
        if entry.is_optional {
            self.put("?");
        }
    }

    fn separated<T>(&mut self, parts: &[T], mut write: impl FnMut(&mut Self, &T)) {
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                self.put(",");
                self.line();
            }
            write(self, part);
        }
    }

    fn block<T>(&mut self, open: &str, close: &str, parts: &[T], write: impl FnMut(&mut Self, &T)) {
        self.put(open);
        if !parts.is_empty() {
            self.line();
            self.indent += 1;
            self.separated(parts, write);
            self.indent -= 1;
            self.line();
        }
        self.put(close);
    }

    fn each(&mut self, each: &Loop) {
        self.put("__comprehension__(");
        self.indent += 1;
        self.line();
        self.put("// Variable");
        for name in [Some(&each.variable), each.second.as_ref()].into_iter().flatten() {
            self.line();
            self.put(name);
            self.put(",");
        }
        self.titled("// Target", &each.range);
        self.line();
        self.put("// Accumulator");
        self.line();
        self.put(&each.accumulator);
        self.put(",");
        self.titled("// Init", &each.init);
        self.titled("// LoopCondition", &each.condition);
        self.titled("// LoopStep", &each.step);
        self.line();
        self.put("// Result");
        self.line();
        self.expr(&each.result);
        self.put(")");
        self.indent -= 1;
    }

    fn titled(&mut self, title: &str, expr: &Expr) {
        self.line();
        self.put(title);
        self.line();
        self.expr(expr);
        self.put(",");
    }
}

fn literal(value: &Value<'_>) -> String {
    match value {
        Value::Uint(number) => format!("{number}u"),
        Value::Double(number) => crate::number::shortest(*number),
        Value::String(text) => quote(text),
        Value::Bytes(bytes) => format!("b{}", quote_bytes(bytes)),
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => number.to_string(),
        _ => "null".to_owned(),
    }
}
