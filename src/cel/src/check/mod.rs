//! The checker: finds the type of each part of an expression, and the variable or overload that each name means.

mod calls;
mod checker;
mod literals;
mod unify;

use std::sync::Arc;

pub use checker::check;
pub use literals::{check_formats, check_literals};
pub use unify::instantiate;

use crate::environment::{Environment, OverloadDecl};
use crate::source::{Issues, Source};
use crate::stack::with_room;
use crate::syntax::{Ast, Expr, ExprId, ExprKind, parse};
use crate::types::Type;
use crate::value::Value;

/// The meaning of a name.
#[derive(Clone, Debug)]
pub enum Reference {
    /// A variable, or a constant with its value.
    Ident(Arc<str>, Option<Value<'static>>),
    /// A function: the possible overloads; exactly one if the types determine it.
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
    /// Parses the text of an expression, checks it against the declarations of an environment, and checks its literals.
    /// [`crate::estimate::estimate`] then estimates its cost, and [`Program::new`](crate::eval::Program::new) compiles
    /// it for evaluation.
    ///
    /// # Errors
    /// The error, formatted as cel-go does: each issue with its position, its line and a mark below.
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

    /// Returns the type of a part.
    pub fn type_of(&self, id: ExprId) -> &Type {
        self.types.get(id as usize).unwrap_or(&Type::Error)
    }

    /// Returns the type of the whole.
    pub fn output(&self) -> &Type {
        self.type_of(self.ast.root.id)
    }

    /// Returns the meaning of a part. Returns `None` if it is neither a name nor a call.
    pub fn reference(&self, id: ExprId) -> Option<&Reference> {
        self.references.get(id as usize)?.as_ref()
    }

    /// Returns whether a name in the expression means the variable.
    pub fn refers_to(&self, variable: &str) -> bool {
        let means = |reference: &Reference| matches!(reference, Reference::Ident(name, _) if **name == *variable);
        self.references.iter().flatten().any(means)
    }

    /// Returns the overloads that a call may mean.
    pub fn overloads(&self, id: ExprId) -> &[Arc<OverloadDecl>] {
        match self.reference(id) {
            Some(Reference::Function(overloads)) => overloads,
            _ => &[],
        }
    }

    /// Returns the expression as cel-go's tests state it: each part with its type and its meaning.
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
