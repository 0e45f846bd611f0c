//! The checker of expressions.

use std::sync::Arc;

use super::unify::{Bindings, most_general};
use super::{Checked, Reference};
use crate::environment::{Environment, OverloadDecl};
use crate::source::Issues;
use crate::syntax::{Ast, Entry, Expr, ExprId, ExprKind, Item, Loop, TextPositions};
use crate::types::Type;
use crate::value::Value;

/// Checks an expression. The result is usable only if no issue was reported.
pub fn check(ast: Ast, environment: &Environment, issues: &mut Issues) -> Checked {
    let Ast { mut root, positions } = ast;
    let count = positions.len();
    let mut checker = Checker {
        environment,
        issues,
        positions: &positions,
        bindings: Bindings::default(),
        scopes: Vec::new(),
        types: vec![None; count],
        references: vec![None; count],
    };
    checker.expr(&mut root);
    let Checker { bindings, types, references, .. } = checker;
    let types = types.into_iter().map(|each| each.map_or(Type::Error, |each| bindings.finalize(&each))).collect();
    Checked { ast: Ast { root, positions }, types, references }
}

pub(super) struct Checker<'c> {
    pub(super) environment: &'c Environment,
    issues: &'c mut Issues,
    positions: &'c TextPositions,
    pub(super) bindings: Bindings,
    /// Variables of loops, the innermost last.
    pub(super) scopes: Vec<(Arc<str>, Type)>,
    types: Vec<Option<Type>>,
    references: Vec<Option<Reference>>,
}

/// The declaration that a name resolves to.
struct ResolvedName {
    name: Arc<str>,
    of: Type,
    value: Option<Value<'static>>,
}

impl Checker<'_> {
    pub(super) fn report(&mut self, id: ExprId, text: String) {
        self.issues.report(self.positions.position(id), text);
    }

    pub(super) fn set(&mut self, id: ExprId, of: Type) {
        if let Some(place) = self.types.get_mut(id as usize) {
            *place = Some(of);
        }
    }

    pub(super) fn refer(&mut self, id: ExprId, reference: Reference) {
        if let Some(place) = self.references.get_mut(id as usize) {
            *place = Some(reference);
        }
    }

    pub(super) fn type_of(&self, expr: &Expr) -> Type {
        self.types.get(expr.id as usize).cloned().flatten().unwrap_or(Type::Error)
    }

    pub(super) fn expr(&mut self, expr: &mut Expr) {
        let id = expr.id;
        match &mut expr.kind {
            ExprKind::Literal(value) => {
                let of = value.type_of();
                self.set(id, of);
            }
            ExprKind::Ident(name) => {
                let name = name.clone();
                self.ident(expr, &name);
            }
            ExprKind::Select(_) => self.select(expr),
            ExprKind::Call(call) if &*call.function == "_?._" => self.optional_select(expr),
            ExprKind::Call(_) => self.call(expr),
            ExprKind::List(items) => {
                let of = self.list(items);
                self.set(id, of);
            }
            ExprKind::Map(entries) => {
                let of = self.map(entries);
                self.set(id, of);
            }
            ExprKind::Object(..) => self.object(expr),
            ExprKind::Loop(each) => {
                let of = self.each(each);
                self.set(id, of);
            }
            ExprKind::Unspecified => self.report(id, "unexpected unspecified type: *ast.expr".to_owned()),
        }
    }

    fn lookup(&self, name: &str) -> Option<ResolvedName> {
        for candidate in self.environment.candidates(name) {
            if let Some((name, of)) = self.scopes.iter().rev().find(|(name, _)| **name == *candidate) {
                return Some(ResolvedName { name: name.clone(), of: of.clone(), value: None });
            }
            if let Some(variable) = self.environment.variable(&candidate) {
                let of = variable.of.clone();
                return Some(ResolvedName { name: candidate.into(), of, value: variable.constant.clone() });
            }
            if let Some(of) = self.environment.type_named(&candidate) {
                return Some(ResolvedName { name: candidate.into(), of: Type::type_of(of), value: None });
            }
        }
        None
    }

    fn ident(&mut self, expr: &mut Expr, name: &str) {
        match self.lookup(name) {
            Some(found) => self.found(expr, found),
            None => {
                self.set(expr.id, Type::Error);
                self.undeclared(expr.id, name);
            }
        }
    }

    fn found(&mut self, expr: &mut Expr, found: ResolvedName) {
        self.set(expr.id, found.of);
        self.refer(expr.id, Reference::Ident(found.name.clone(), found.value));
        expr.kind = ExprKind::Ident(found.name);
    }

    pub(super) fn undeclared(&mut self, id: ExprId, name: &str) {
        let container = &self.environment.container;
        self.report(id, format!("undeclared reference to '{name}' (in container '{container}')"));
    }

    fn select(&mut self, expr: &mut Expr) {
        if let Some(found) = expr.qualified_name().and_then(|name| self.lookup(&name)) {
            return self.found(expr, found);
        }
        let ExprKind::Select(select) = &mut expr.kind else { return };
        let (field, is_test) = (select.field.clone(), select.is_test);
        let of = self.field(expr.id, &mut select.operand, &field, false);
        let of = if is_test { Type::Bool } else { self.bindings.resolve(&of) };
        self.set(expr.id, of);
    }

    fn optional_select(&mut self, expr: &mut Expr) {
        let id = expr.id;
        let ExprKind::Call(call) = &mut expr.kind else { return };
        let [operand, field] = &mut call.arguments[..] else {
            let text = format!("unsupported optional field selection: incorrect signature. argument count: {}", 0);
            return self.report(id, text);
        };
        let Some(name) = field.as_literal().and_then(Value::as_str).map(str::to_owned) else {
            let at = field.id;
            return self.report(at, "unsupported optional field selection".to_owned());
        };
        let of = self.field(id, operand, &name, true);
        let of = self.bindings.resolve(&of);
        self.set(id, of);
        let overload = OverloadDecl::unbound("select_optional_field");
        self.refer(id, Reference::Function(vec![Arc::new(overload)]));
    }

    /// Returns the type of a field of `operand`; reports an issue if there is none.
    fn field(&mut self, id: ExprId, operand: &mut Expr, field: &str, optional: bool) -> Type {
        self.expr(operand);
        let of = self.bindings.resolve(&self.type_of(operand));
        let inner = of.optional_of();
        let target = inner.unwrap_or(&of);
        let found = match target {
            Type::Map(entry) => entry.1.clone(),
            Type::Object(name) => self.object_field(id, name, field),
            Type::Param(_) => {
                self.bindings.assign(&Type::Dyn, target);
                Type::Dyn
            }
            Type::Dyn | Type::Any | Type::Error => Type::Dyn,
            other => {
                self.report(id, format!("type '{other}' does not support field selection"));
                Type::Dyn
            }
        };
        if optional || inner.is_some() { Type::optional(found) } else { found }
    }

    fn object_field(&mut self, id: ExprId, object: &str, field: &str) -> Type {
        if !self.environment.has_object(object) {
            self.report(id, format!("unexpected failed resolution of '{object}'"));
            return Type::Error;
        }
        match self.environment.provider.field(object, field) {
            Some(of) => of,
            None => {
                self.report(id, format!("undefined field '{field}'"));
                Type::Error
            }
        }
    }

    pub(super) fn mismatch(&mut self, id: ExprId, expected: &Type, found: &Type) {
        self.report(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn list(&mut self, items: &mut [Item]) -> Type {
        let mut of = None;
        for item in items {
            self.expr(&mut item.value);
            let mut found = self.type_of(&item.value);
            if item.is_optional {
                found = self.unwrapped(item.value.id, found);
            }
            of = Some(self.join(item.value.id, of, found));
        }
        Type::list(of.unwrap_or_else(|| self.bindings.fresh()))
    }

    /// Returns the type inside an optional; reports an issue if the type is not an optional.
    fn unwrapped(&mut self, id: ExprId, found: Type) -> Type {
        match found.optional_of() {
            Some(inner) => inner.clone(),
            None => {
                if !found.is_dyn() {
                    self.mismatch(id, &Type::optional(found.clone()), &found);
                }
                found
            }
        }
    }

    fn join(&mut self, id: ExprId, so_far: Option<Type>, found: Type) -> Type {
        let Some(so_far) = so_far else { return found };
        if self.bindings.assign(&so_far, &found) {
            return most_general(&so_far, &found);
        }
        if !self.environment.homogeneous {
            return Type::Dyn;
        }
        self.mismatch(id, &so_far, &found);
        Type::Error
    }

    fn map(&mut self, entries: &mut [Entry<Expr>]) -> Type {
        let (mut key_type, mut value_type) = (None, None);
        for Entry { key, value, is_optional, .. } in entries {
            self.expr(key);
            let found = self.type_of(key);
            key_type = Some(self.join(key.id, key_type, found));
            self.expr(value);
            let mut found = self.type_of(value);
            if *is_optional {
                found = self.unwrapped(value.id, found);
            }
            value_type = Some(self.join(value.id, value_type, found));
        }
        let key_type = key_type.unwrap_or_else(|| self.bindings.fresh());
        Type::map(key_type, value_type.unwrap_or_else(|| self.bindings.fresh()))
    }

    fn object(&mut self, expr: &mut Expr) {
        let id = expr.id;
        let ExprKind::Object(name, fields) = &mut expr.kind else { return };
        let Some(found) = self.lookup(name) else {
            self.set(id, Type::Error);
            let name = name.clone();
            return self.undeclared(id, &name);
        };
        *name = found.name.clone();
        self.refer(id, Reference::Ident(found.name.clone(), None));
        let of = match &found.of {
            Type::Type(Some(of)) if matches!(**of, Type::Object(_)) => (**of).clone(),
            Type::Type(Some(of)) => {
                self.report(id, format!("'{of}' is not a message type"));
                Type::Error
            }
            Type::Error => Type::Error,
            other => {
                self.report(id, format!("'{other}' is not a type"));
                Type::Error
            }
        };
        self.set(id, of);
        let object = found.name;
        for field in fields {
            self.expr(&mut field.value);
            let wanted = self.object_field(field.id, &object, &field.key);
            let mut given = self.type_of(&field.value);
            if field.is_optional {
                given = self.unwrapped(field.value.id, given);
            }
            if !self.bindings.assign(&wanted, &given) {
                let name = &field.key;
                let text = format!("expected type of field '{name}' is '{wanted}' but provided type is '{given}'");
                self.report(field.id, text);
            }
        }
    }

    fn each(&mut self, each: &mut Loop) -> Type {
        self.expr(&mut each.range);
        self.expr(&mut each.init);
        let range = self.bindings.resolve(&self.type_of(&each.range));
        let gathered = self.type_of(&each.init);
        let outer = self.scopes.len();
        self.scopes.push((each.accumulator.clone(), gathered.clone()));
        let (key, value) = match &range {
            Type::List(element) => (Type::Int, (**element).clone()),
            Type::Map(entry) => entry.as_ref().clone(),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.bindings.assign(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let text = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.report(each.range.id, text);
                (Type::Error, Type::Error)
            }
        };
        let inner = self.scopes.len();
        match &each.second {
            Some(second) => {
                self.scopes.push((each.variable.clone(), key));
                self.scopes.push((second.clone(), value));
            }
            None => {
                let is_list = matches!(range, Type::List(_));
                self.scopes.push((each.variable.clone(), if is_list { value } else { key }));
            }
        }
        self.expr(&mut each.condition);
        self.assert(&each.condition, &Type::Bool);
        self.expr(&mut each.step);
        self.assert(&each.step, &gathered);
        self.scopes.truncate(inner);
        self.expr(&mut each.result);
        self.scopes.truncate(outer);
        self.bindings.resolve(&self.type_of(&each.result))
    }

    fn assert(&mut self, expr: &Expr, wanted: &Type) {
        let found = self.type_of(expr);
        if !self.bindings.assign(wanted, &found) {
            self.mismatch(expr.id, wanted, &found);
        }
    }
}
