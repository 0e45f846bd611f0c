//! Checks calls: finds the function that a name means, and its overloads that take the arguments.

use std::collections::HashMap;
use std::sync::Arc;

use super::Reference;
use super::checker::Checker;
use super::unify::instantiate;
use crate::environment::{FunctionDecl, OverloadDecl};
use crate::syntax::{Call, Expr, ExprId, ExprKind};
use crate::types::Type;

impl Checker<'_> {
    pub(super) fn call(&mut self, expr: &mut Expr) {
        let id = expr.id;
        let ExprKind::Call(call) = &mut expr.kind else { return };
        for argument in &mut call.arguments {
            self.expr(argument);
        }
        if call.receiver.is_some()
            && let Some(function) = self.namespaced(call)
        {
            call.receiver = None;
            call.function = function.name.clone();
            return self.resolve(id, call, &function);
        }
        if let Some(receiver) = &mut call.receiver {
            self.expr(receiver);
        }
        match self.function(&call.function) {
            Some(function) => {
                call.function = function.name.clone();
                self.resolve(id, call, &function);
            }
            None => {
                self.set(id, Type::Error);
                let name = call.function.clone();
                self.undeclared(id, &name);
            }
        }
    }

    fn function(&self, name: &str) -> Option<Arc<FunctionDecl>> {
        self.environment.candidates(name).into_iter().find_map(|name| self.environment.function(&name))
    }

    /// Returns the function `a.b.f` of a call `a.b.f(c)`, if there is one of this qualified name.
    fn namespaced(&self, call: &Call) -> Option<Arc<FunctionDecl>> {
        let prefix = call.receiver.as_ref()?.qualified_name()?;
        self.function(&format!("{prefix}.{}", call.function))
    }

    fn resolve(&mut self, id: ExprId, call: &Call, function: &FunctionDecl) {
        let is_member = call.receiver.is_some();
        let mut arguments: Vec<Type> = call.receiver.iter().map(|receiver| self.type_of(receiver)).collect();
        arguments.extend(call.arguments.iter().map(|argument| self.type_of(argument)));
        if matches!(&*call.function, "_&&_" | "_||_") {
            return self.resolve_logic(id, call, function, &arguments);
        }
        let mut result: Option<Type> = None;
        let mut fitting = Vec::new();
        for overload in function.overloads.iter().filter(|overload| overload.signature.is_member == is_member) {
            let with: HashMap<Arc<str>, Type> =
                overload.parameters.iter().map(|name| (name.clone(), self.bindings.fresh())).collect();
            let wanted: Vec<Type> = overload.signature.arguments.iter().map(|each| instantiate(each, &with)).collect();
            // Upstream does not enforce the ban on comparing different number types within loops.
            let is_banned =
                !self.environment.base.compares_numbers && self.scopes.is_empty() && compares_numbers(overload);
            if is_banned || !self.bindings.assign_all(&arguments, &wanted) {
                continue;
            }
            fitting.push(overload.clone());
            let given = self.bindings.resolve(&instantiate(&overload.signature.result, &with));
            result = Some(match result {
                None => given,
                Some(so_far) if so_far.is_dyn() || so_far == given => so_far,
                Some(_) => Type::Dyn,
            });
        }
        match result {
            Some(result) => {
                self.set(id, result);
                self.refer(id, Reference::Function(fitting));
            }
            None => self.no_overload(id, &function.name, &arguments, is_member),
        }
    }

    fn resolve_logic(&mut self, id: ExprId, call: &Call, function: &FunctionDecl, arguments: &[Type]) {
        let mut of = Type::Bool;
        for (argument, found) in call.arguments.iter().zip(arguments) {
            if !self.bindings.assign(found, &Type::Bool) {
                self.mismatch(argument.id, &Type::Bool, found);
                of = Type::Error;
            }
        }
        if of == Type::Bool {
            self.refer(id, Reference::Function(function.overloads.first().cloned().into_iter().collect()));
        }
        self.set(id, of);
    }

    fn no_overload(&mut self, id: ExprId, name: &str, arguments: &[Type], is_member: bool) {
        let mut shown: Vec<String> = arguments.iter().map(|each| self.bindings.finalize(each).to_string()).collect();
        let receiver = if is_member { format!("{}.", shown.remove(0)) } else { String::new() };
        let signature = format!("{receiver}({})", shown.join(", "));
        self.report(id, format!("found no matching overload for '{name}' applied to '{signature}'"));
        self.set(id, Type::Error);
    }
}

/// Returns whether the overload compares numbers of two types.
fn compares_numbers(overload: &OverloadDecl) -> bool {
    let is_number = |of: &Type| matches!(of, Type::Int | Type::Uint | Type::Double);
    match &overload.signature.arguments[..] {
        [one, other] => overload.signature.result == Type::Bool && one != other && is_number(one) && is_number(other),
        _ => false,
    }
}
