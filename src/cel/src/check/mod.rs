//! The checker: what type each part of an expression has, and which variable or overload each name means.

mod checker;
mod literals;
mod unify;

use std::sync::Arc;

pub use checker::check;
pub use literals::{check_formats, check_literals};
pub use unify::instantiate;

use crate::environment::{Environment, OverloadDecl};
use crate::error::Outcome;
use crate::source::{Issues, Source};
use crate::stack::with_room;
use crate::syntax::{Ast, Expr, ExprId, ExprKind, parse};
use crate::types::Type;
use crate::value::Value;

/// Who knows objects with declared fields.
pub trait Provider: std::fmt::Debug + Send + Sync {
    /// Whether there is an object type of this name.
    fn has_object(&self, name: &str) -> bool;

    /// The type of a field of an object type, by the field's name in expressions.
    fn field(&self, object: &str, field: &str) -> Option<Type>;

    /// An object that an expression makes of a map of its fields. The map itself, unless told otherwise.
    fn make<'a>(&self, _object: &str, fields: Value<'a>) -> Outcome<Value<'a>> {
        Ok(fields)
    }
}

/// Knows no objects.
#[derive(Debug)]
pub struct NoObjects;

impl Provider for NoObjects {
    fn has_object(&self, _: &str) -> bool {
        false
    }

    fn field(&self, _: &str, _: &str) -> Option<Type> {
        None
    }
}

/// What a name means.
#[derive(Clone, Debug)]
pub enum Reference {
    /// A variable, or a constant with its value.
    Ident(Arc<str>, Option<Value<'static>>),
    /// A function: the overloads that may be meant, one where the types tell.
    Function(Vec<Arc<OverloadDecl>>),
}

/// A checked expression.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The expression, its names resolved.
    pub ast: Ast,
    types: Vec<Type>,
    references: Vec<Option<Reference>>,
}

impl Checked {
    /// What an expression of a client is in an environment. It is parsed, checked against what is declared there, and
    /// its literals are looked at. What it may cost tells [`crate::cost::estimate`], and
    /// [`Program::new`](crate::eval::Program::new) makes of it what is evaluated.
    ///
    /// # Errors
    /// What is wrong with it, as cel-go shows it: each issue with its place, its line and a mark below.
    pub fn of(text: &str, environment: &Environment) -> Result<Self, String> {
        with_room(|| {
            let (source, mut issues) = (Source::new(text), Issues::default());
            let checked = parse(&source, environment.dialect(), &mut issues).map(|ast| {
                let checked = check(ast, environment, &mut issues);
                if issues.is_empty() {
                    check_literals(&checked, &mut issues);
                }
                checked
            });
            checked.filter(|_| issues.is_empty()).ok_or_else(|| issues.show(&source))
        })
    }

    /// The type of a part.
    pub fn type_of(&self, id: ExprId) -> &Type {
        self.types.get(id as usize).unwrap_or(&Type::Error)
    }

    /// The type of the whole.
    pub fn output(&self) -> &Type {
        self.type_of(self.ast.root.id)
    }

    /// What a part means, if it is a name or a call.
    pub fn reference(&self, id: ExprId) -> Option<&Reference> {
        self.references.get(id as usize)?.as_ref()
    }

    /// Whether a name in it means the variable.
    pub fn refers_to(&self, variable: &str) -> bool {
        let means = |reference: &Reference| matches!(reference, Reference::Ident(name, _) if **name == *variable);
        self.references.iter().flatten().any(means)
    }

    /// The overloads that a call may mean.
    pub fn overloads(&self, id: ExprId) -> &[Arc<OverloadDecl>] {
        match self.reference(id) {
            Some(Reference::Function(overloads)) => overloads,
            _ => &[],
        }
    }

    /// The expression as cel-go's tests state it: each part with its type and what it means.
    pub fn debug_text(&self) -> String {
        crate::syntax::debug_text(&self.ast.root, &|expr| expr.map_or_else(String::new, |expr| self.adornment(expr)))
    }

    fn adornment(&self, expr: &Expr) -> String {
        let mut text = format!("~{}", self.type_of(expr.id));
        let names = match self.reference(expr.id) {
            Some(Reference::Ident(name, _)) => name.to_string(),
            Some(Reference::Function(overloads)) => {
                let mut ids: Vec<&str> = overloads.iter().map(|each| &*each.id).collect();
                ids.sort_unstable();
                ids.join("|")
            }
            None => return text,
        };
        if !matches!(expr.kind, ExprKind::Loop(_) | ExprKind::Map(_)) {
            text.push('^');
            text.push_str(&names);
        }
        text
    }
}
