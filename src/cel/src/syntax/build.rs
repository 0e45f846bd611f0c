//! Converts the parser's tree to the syntax tree: names, literals, calls; expands macros on the way.

use std::sync::Arc;

use super::ast::{Ast, Call, Entry, Expr, ExprId, ExprKind, Item, Select, TextPositions};
use super::lexer::Tokens;
use super::literal;
use super::machine::Halt;
use super::macros::{Expanded, Macros};
use super::rule::{Label, Role, Rule};
use super::tree::{Child, NodeId, Tree};
use crate::source::{Issues, TextPosition};
use crate::syntax::Dialect;
use crate::value::Value;
use crate::value::escape::RESERVED;

/// Builds the syntax tree.
pub(super) struct Builder<'t, 'a> {
    pub tree: &'t Tree,
    pub tokens: &'t Tokens<'a>,
    pub issues: &'t mut Issues,
    pub dialect: &'t Dialect,
    pub positions: TextPositions,
    depth: u16,
}

type Built = Result<Expr, Halt>;

impl<'t, 'a> Builder<'t, 'a> {
    pub fn new(
        tree: &'t Tree,
        tokens: &'t Tokens<'a>,
        issues: &'t mut Issues,
        dialect: &'t Dialect,
        positions: TextPositions,
    ) -> Self {
        Self { tree, tokens, issues, dialect, positions, depth: 0 }
    }

    pub fn run(mut self, root: Option<NodeId>) -> Result<Ast, Halt> {
        let root = self.build(root)?;
        Ok(Ast { root, positions: self.positions })
    }

    fn build(&mut self, node: Option<NodeId>) -> Built {
        let Some(node) = node.and_then(|node| self.tree.unwrapped(node)) else { return Ok(self.nothing()) };
        match self.tree.label(node) {
            Label::Of(Rule::Expr) => self.deeper(|this| this.conditional(node)),
            Label::Of(Rule::Or) => self.logic(node, "_||_"),
            Label::Of(Rule::And) => self.logic(node, "_&&_"),
            Label::Of(Rule::Relation | Rule::Calc) => self.deeper(|this| this.binary(node)),
            Label::Of(Rule::Unary) => {
                let id = self.id_of_node(node);
                Ok(Expr { id, kind: ExprKind::Literal(Value::string("<<error>>")) })
            }
            Label::LogicalNot => self.unary(node, "!_"),
            Label::Negate => self.unary(node, "-_"),
            Label::Select => self.deeper(|this| this.select(node)),
            Label::MemberCall => self.deeper(|this| this.member_call(node)),
            Label::Index => self.deeper(|this| this.index(node)),
            Label::Ident => Ok(self.ident(node)),
            Label::GlobalCall => self.global_call(node),
            Label::CreateList => self.list(node),
            Label::CreateMap => self.map(node),
            Label::CreateObject => self.object(node),
            label => match literal::read(label, self.text(node, Role::Sign), self.text(node, Role::Name)) {
                Some(Ok(value)) => Ok(Expr { id: self.id_of_node(node), kind: ExprKind::Literal(value) }),
                Some(Err(text)) => Ok(self.error_at_node(node, text)),
                None => Ok(self.nothing()),
            },
        }
    }

    fn deeper(&mut self, build: impl FnOnce(&mut Self) -> Built) -> Built {
        self.depth += 1;
        if self.depth > self.dialect.bounds.depth {
            return Err(Halt::Because("max recursion depth exceeded".to_owned()));
        }
        let built = build(self);
        self.depth -= 1;
        built
    }

    /// Returns the part for a missing expression, which the parser has already reported.
    fn nothing(&mut self) -> Expr {
        let id = self.positions.add(-1);
        if self.issues.is_empty() {
            self.issues.report(TextPosition::NONE, "unknown parse element encountered: <<nil>>");
        }
        Expr { id, kind: ExprKind::Unspecified }
    }

    fn offset(&self, child: Child) -> i32 {
        let seen = |at: u32| self.tokens.all[self.tokens.seen[at as usize] as usize].offset;
        match child {
            Child::Token(at) | Child::Missing(_, at) => seen(at),
            Child::Node(node) => seen(self.tree.start(node)),
        }
    }

    fn id_of(&mut self, child: Option<Child>) -> ExprId {
        let offset = child.map_or(-1, |child| self.offset(child));
        self.positions.add(offset)
    }

    fn id_of_node(&mut self, node: NodeId) -> ExprId {
        self.id_of(Some(Child::Node(node)))
    }

    fn text(&self, node: NodeId, role: Role) -> Option<&'a str> {
        self.text_of(self.tree.get(node, role)?)
    }

    fn text_of(&self, child: Child) -> Option<&'a str> {
        match child {
            Child::Token(at) => Some(self.tokens.all[self.tokens.seen[at as usize] as usize].text),
            Child::Missing(..) => Some("<missing IDENTIFIER>"),
            Child::Node(_) => None,
        }
    }

    /// Reports an error. Returns the part that takes the place of the wrong expression.
    pub fn error(&mut self, id: ExprId, text: impl Into<String>) -> Expr {
        self.issues.report(self.positions.position(id), text);
        Expr { id, kind: ExprKind::Unspecified }
    }

    fn error_at(&mut self, child: Option<Child>, text: impl Into<String>) -> Expr {
        let id = self.id_of(child);
        self.error(id, text)
    }

    fn error_at_node(&mut self, node: NodeId, text: impl Into<String>) -> Expr {
        self.error_at(Some(Child::Node(node)), text)
    }

    fn conditional(&mut self, node: NodeId) -> Built {
        let condition = self.build(self.tree.node(node, Role::First))?;
        let id = self.id_of(self.tree.get(node, Role::Operator));
        let yes = self.build(self.tree.node(node, Role::Further))?;
        let no = self.build(self.tree.node(node, Role::Last))?;
        Ok(self.call(id, "_?_:_", None, vec![condition, yes, no]))
    }

    /// Builds a balanced tree of `a && b && c`, so that long chains are not deep.
    fn logic(&mut self, node: NodeId, function: &str) -> Built {
        let mut terms = vec![self.build(self.tree.node(node, Role::First))?];
        let mut operators = Vec::new();
        let further: Vec<Child> = self.tree.all(node, Role::Further).collect();
        for (at, operator) in self.tree.all(node, Role::Operator).enumerate() {
            let Some(Child::Node(term)) = further.get(at) else {
                let wanted = if function == "_||_" { "||" } else { "&&" };
                return Ok(self.error_at_node(node, format!("unexpected character, wanted '{wanted}'")));
            };
            terms.push(self.build(Some(*term))?);
            operators.push(self.id_of(Some(operator)));
        }
        let mut terms: Vec<Option<Expr>> = terms.into_iter().map(Some).collect();
        let function: Arc<str> = function.into();
        Ok(balanced(&function, &mut terms, &operators))
    }

    fn binary(&mut self, node: NodeId) -> Built {
        let operator = self.tree.get(node, Role::Operator);
        let function = match operator.and_then(|child| self.text_of(child)) {
            Some("==") => "_==_",
            Some("!=") => "_!=_",
            Some("<") => "_<_",
            Some("<=") => "_<=_",
            Some(">") => "_>_",
            Some(">=") => "_>=_",
            Some("in") => "@in",
            Some("+") => "_+_",
            Some("-") => "_-_",
            Some("*") => "_*_",
            Some("/") => "_/_",
            Some("%") => "_%_",
            _ => return Ok(self.error_at_node(node, "operator not found")),
        };
        let left = self.build(self.tree.node(node, Role::First))?;
        let id = self.id_of(operator);
        let right = self.build(self.tree.node(node, Role::Further))?;
        Ok(self.call(id, function, None, vec![left, right]))
    }

    fn unary(&mut self, node: NodeId, function: &str) -> Built {
        let mut operators = self.tree.all(node, Role::Operator);
        let first = operators.next();
        if operators.count() % 2 == 1 || first.is_none() {
            return self.build(self.tree.node(node, Role::First));
        }
        let id = self.id_of(first);
        let operand = self.build(self.tree.node(node, Role::First))?;
        Ok(self.call(id, function, None, vec![operand]))
    }

    fn select(&mut self, node: NodeId) -> Built {
        let operand = self.build(self.tree.node(node, Role::First))?;
        let operator = self.tree.get(node, Role::Operator);
        let (Some(_), Some(name)) = (operator, self.tree.node(node, Role::Name)) else {
            return Ok(Expr { id: self.id_of_node(node), kind: ExprKind::Unspecified });
        };
        let field = match self.name(name) {
            Ok(field) => field,
            Err(text) => {
                self.error_at_node(name, text);
                "".into()
            }
        };
        if self.tree.get(node, Role::Optional).is_none() {
            let id = self.id_of(operator);
            return Ok(Expr { id, kind: ExprKind::Select(Box::new(Select { operand, field, is_test: false })) });
        }
        if !self.dialect.optional_syntax {
            return Ok(self.error_at(operator, "unsupported syntax '.?'"));
        }
        let literal = Expr { id: self.id_of_node(name), kind: ExprKind::Literal(Value::string(field)) };
        let id = self.id_of(operator);
        Ok(call_of(id, "_?._", vec![operand, literal]))
    }

    /// Returns the name of a field.
    fn name(&self, node: NodeId) -> Result<Arc<str>, &'static str> {
        match (self.tree.label(node), self.text(node, Role::Name)) {
            (Label::SimpleName, Some(text)) => Ok(text.into()),
            (Label::QuotedName, Some(_)) if !self.dialect.quoted_names => Err("unsupported syntax: '`'"),
            (Label::QuotedName, Some(text)) => match text.strip_prefix('`').and_then(|text| text.strip_suffix('`')) {
                Some(text) if !text.is_empty() => Ok(text.into()),
                _ => Err("invalid escaped identifier: underflow"),
            },
            _ => Err("unsupported ident kind"),
        }
    }

    fn member_call(&mut self, node: NodeId) -> Built {
        let receiver = self.build(self.tree.node(node, Role::First))?;
        let Some(function) = self.text(node, Role::Name) else {
            return Ok(Expr { id: self.id_of_node(node), kind: ExprKind::Unspecified });
        };
        let id = self.id_of(self.tree.get(node, Role::Open));
        let arguments = self.arguments(node)?;
        Ok(self.call(id, function, Some(receiver), arguments))
    }

    fn index(&mut self, node: NodeId) -> Built {
        let operand = self.build(self.tree.node(node, Role::First))?;
        let operator = self.tree.get(node, Role::Operator);
        let id = self.id_of(operator);
        let index = self.build(self.tree.node(node, Role::Further))?;
        let function = match self.tree.get(node, Role::Optional) {
            Some(_) if !self.dialect.optional_syntax => return Ok(self.error_at(operator, "unsupported syntax '[?'")),
            Some(_) => "_[?_]",
            None => "_[_]",
        };
        Ok(self.call(id, function, None, vec![operand, index]))
    }

    fn dotted(&self, node: NodeId, name: &str) -> String {
        if self.tree.get(node, Role::Dot).is_some() { format!(".{name}") } else { name.to_owned() }
    }

    fn ident(&mut self, node: NodeId) -> Expr {
        match self.text(node, Role::Name) {
            None => Expr { id: self.id_of_node(node), kind: ExprKind::Unspecified },
            Some(name) if RESERVED.contains(&name) => self.error_at_node(node, format!("reserved identifier: {name}")),
            Some(name) => {
                let id = self.id_of(self.tree.get(node, Role::Name));
                Expr { id, kind: ExprKind::Ident(self.dotted(node, name).into()) }
            }
        }
    }

    fn global_call(&mut self, node: NodeId) -> Built {
        match self.text(node, Role::Name) {
            None => Ok(Expr { id: self.id_of_node(node), kind: ExprKind::Unspecified }),
            Some(name) if RESERVED.contains(&name) => {
                Ok(self.error_at_node(node, format!("reserved identifier: {name}")))
            }
            Some(name) => {
                let id = self.id_of(self.tree.get(node, Role::Open));
                let arguments = self.arguments(node)?;
                Ok(self.call(id, &self.dotted(node, name), None, arguments))
            }
        }
    }

    fn arguments(&mut self, node: NodeId) -> Result<Vec<Expr>, Halt> {
        let Some(list) = self.tree.node(node, Role::Parts) else { return Ok(Vec::new()) };
        let nodes: Vec<Child> = self.tree.all(list, Role::First).collect();
        nodes.into_iter().map(|child| self.build(as_node(child))).collect()
    }

    fn list(&mut self, node: NodeId) -> Built {
        let id = self.id_of(self.tree.get(node, Role::Operator));
        let mut items = Vec::new();
        if let Some(list) = self.tree.node(node, Role::Parts) {
            let nodes: Vec<Child> = self.tree.all(list, Role::First).collect();
            for part in nodes.into_iter().filter_map(as_node) {
                let value = self.build(self.tree.node(part, Role::First))?;
                let optional = self.tree.get(part, Role::Optional);
                let is_optional = optional.is_some() && self.dialect.optional_syntax;
                if optional.is_some() && !is_optional {
                    self.error_at(optional, "unsupported syntax '?'");
                }
                items.push(Item { value, is_optional });
            }
        }
        Ok(Expr { id, kind: ExprKind::List(items) })
    }

    fn map(&mut self, node: NodeId) -> Built {
        let id = self.id_of(self.tree.get(node, Role::Operator));
        let entries = self.entries(node, |this, key| this.build(this.tree.node(key, Role::First)).map(Some))?;
        Ok(Expr { id, kind: ExprKind::Map(entries) })
    }

    fn object(&mut self, node: NodeId) -> Built {
        let names: Vec<&str> = self.tree.all(node, Role::Name).filter_map(|child| self.text_of(child)).collect();
        let name = self.dotted(node, &names.join("."));
        let id = self.id_of(self.tree.get(node, Role::Operator));
        let fields = self.entries(node, |this, key| {
            let name = match this.tree.node(key, Role::Name) {
                Some(name) => this.name(name),
                None => Err("unsupported ident kind"),
            };
            Ok(match name {
                Ok(name) => Some(name),
                Err(text) => {
                    this.error_at_node(key, text);
                    None
                }
            })
        })?;
        Ok(Expr { id, kind: ExprKind::Object(name.into(), fields) })
    }

    /// Returns the entries of a map or an object. Returns none if one is incomplete, which the parser has reported.
    fn entries<K>(
        &mut self,
        node: NodeId,
        mut key: impl FnMut(&mut Self, NodeId) -> Result<Option<K>, Halt>,
    ) -> Result<Vec<Entry<K>>, Halt> {
        let Some(list) = self.tree.node(node, Role::Parts) else { return Ok(Vec::new()) };
        let keys: Vec<Child> = self.tree.all(list, Role::Name).collect();
        let values: Vec<Child> = self.tree.all(list, Role::Value).collect();
        let colons: Vec<Child> = self.tree.all(list, Role::Colon).collect();
        let mut entries = Vec::new();
        for (at, colon) in colons.into_iter().enumerate() {
            let id = self.id_of(Some(colon));
            let (Some(Child::Node(key_node)), Some(value)) = (keys.get(at), values.get(at)) else {
                return Ok(Vec::new());
            };
            let is_optional = self.tree.get(*key_node, Role::Optional).is_some();
            if is_optional && !self.dialect.optional_syntax {
                self.error_at_node(*key_node, "unsupported syntax '?'");
                continue;
            }
            let Some(key) = key(self, *key_node)? else { continue };
            let value = self.build(as_node(*value))?;
            entries.push(Entry { id, key, value, is_optional });
        }
        Ok(entries)
    }

    /// Returns a call, or the expansion of its macro.
    fn call(&mut self, id: ExprId, function: &str, receiver: Option<Expr>, arguments: Vec<Expr>) -> Expr {
        match Macros::new(self, id).expand(function, receiver, arguments) {
            Expanded::Expr(expr) => expr,
            Expanded::Not(receiver, arguments) => {
                Expr { id, kind: ExprKind::Call(Box::new(Call { function: function.into(), receiver, arguments })) }
            }
            Expanded::Error(at, text) => self.error(at, text),
        }
    }
}

fn as_node(child: Child) -> Option<NodeId> {
    match child {
        Child::Node(node) => Some(node),
        _ => None,
    }
}

fn call_of(id: ExprId, function: &str, arguments: Vec<Expr>) -> Expr {
    Expr { id, kind: ExprKind::Call(Box::new(Call { function: function.into(), receiver: None, arguments })) }
}

fn balanced(function: &Arc<str>, terms: &mut [Option<Expr>], operators: &[ExprId]) -> Expr {
    if operators.is_empty() {
        return terms[0].take().unwrap_or(Expr { id: 0, kind: ExprKind::Unspecified });
    }
    let middle = operators.len() / 2;
    let (left, right) = terms.split_at_mut(middle + 1);
    let arguments =
        vec![balanced(function, left, &operators[..middle]), balanced(function, right, &operators[middle + 1..])];
    let call = Call { function: function.clone(), receiver: None, arguments };
    Expr { id: operators[middle], kind: ExprKind::Call(Box::new(call)) }
}
