//! CEL expressions about a request and its user: match conditions of authorization webhooks, and mappings and rules of
//! the claims of tokens. Each sees one variable.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use crate::check::Checked;
use crate::environment::{Base, Environment, Provider};
use crate::error::Outcome;
use crate::eval::Program;
use crate::limits::ACCESS_COST_MAX;
use crate::schema::compiled::STORED_MINOR;
use crate::schema::declared::{Declared, DeclaredKind, Objects};
use crate::syntax::{Expr, ExprKind, Loop};
use crate::types::Type;
use crate::value::escape::unescape;
use crate::value::{Tree, Value};

/// The variable that an expression sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// `request`: the specification of a SubjectAccessReview.
    Request,
    /// `claims`: those of a token.
    Claims,
    /// `user`: the user whom claims describe.
    User,
}

/// The reason why an expression is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It does not compile.
    Invalid(String),
    /// It has another type than it must have.
    Type(Type),
    /// The server cannot plan it.
    Internal(String),
}

/// An expression that is ready to be evaluated.
#[derive(Debug)]
pub struct Expression {
    /// The text.
    pub text: String,
    root: Expr,
    program: Program,
}

static REQUEST: LazyLock<Environment> = LazyLock::new(|| environment("request", "SubjectAccessReviewSpec", &request()));
static CLAIMS: LazyLock<Environment> = LazyLock::new(|| environment("claims", "Claims", &map(simple(Type::Any))));
static USER: LazyLock<Environment> = LazyLock::new(|| environment("user", "UserInfo", &user()));

impl Expression {
    /// Compiles an expression. If `is_bool` is true, its type must be known to be bool.
    ///
    /// # Errors
    /// It does not compile, or has another type.
    pub fn compile(text: &str, subject: Subject, is_bool: bool) -> Result<Self, Refused> {
        let environment: &Environment = match subject {
            Subject::Request => &REQUEST,
            Subject::Claims => &CLAIMS,
            Subject::User => &USER,
        };
        let checked = Checked::of(text, environment);
        let mut checked = checked.map_err(|issues| Refused::Invalid(format!("compilation failed: {issues}")))?;
        if is_bool && *checked.output() != Type::Bool {
            return Err(Refused::Type(checked.output().clone()));
        }
        if subject != Subject::Request {
            unescape_fields(&mut checked.ast.root);
        }
        let program = Program::new(&checked, environment);
        let program = program.map_err(|error| Refused::Internal(format!("program instantiation failed: {error}")))?;
        Ok(Self { text: text.to_owned(), root: checked.ast.root, program })
    }

    /// Evaluates the expression with this tree as its variable.
    ///
    /// # Errors
    /// The evaluation fails, or costs more than it may.
    pub fn evaluate<'a>(&'a self, subject: &'a Tree) -> Outcome<Value<'a>> {
        self.program.evaluate(&[Value::of_tree(subject)], ACCESS_COST_MAX).outcome
    }

    /// Returns whether the expression selects a field of its variable: by `variable.field` or `variable.?field`.
    pub fn selects(&self, variable: &str, field: &str) -> bool {
        let is_variable = |expr: &Expr| matches!(&expr.kind, ExprKind::Ident(name) if **name == *variable);
        any(&self.root, &|expr| match &expr.kind {
            ExprKind::Select(select) => *select.field == *field && is_variable(&select.operand),
            ExprKind::Call(call) if &*call.function == "_?._" && call.receiver.is_none() => {
                matches!(&call.arguments[..], [of, Expr { kind: ExprKind::Literal(Value::String(name)), .. }]
                    if is_variable(of) && **name == *field)
            }
            _ => false,
        })
    }
}

/// Replaces escaped names of fields by plain ones: `a__dot__b` becomes `a.b`.
fn unescape_fields(expr: &mut Expr) {
    match &mut expr.kind {
        ExprKind::Unspecified | ExprKind::Literal(_) | ExprKind::Ident(_) => {}
        ExprKind::Select(select) => {
            if let Some(field) = unescape(&select.field) {
                select.field = field.into();
            }
            unescape_fields(&mut select.operand);
        }
        ExprKind::Call(call) => call.receiver.iter_mut().chain(&mut call.arguments).for_each(unescape_fields),
        ExprKind::List(items) => items.iter_mut().for_each(|item| unescape_fields(&mut item.value)),
        ExprKind::Map(entries) => entries.iter_mut().for_each(|entry| {
            unescape_fields(&mut entry.key);
            unescape_fields(&mut entry.value);
        }),
        ExprKind::Object(_, fields) => fields.iter_mut().for_each(|field| unescape_fields(&mut field.value)),
        ExprKind::Loop(of) => {
            let Loop { range, init, condition, step, result, .. } = &mut **of;
            [range, init, condition, step, result].into_iter().for_each(unescape_fields);
        }
    }
}

/// Returns whether something holds for an expression or any part of it.
fn any(expr: &Expr, holds: &dyn Fn(&Expr) -> bool) -> bool {
    let below = |expr: &Expr| any(expr, holds);
    holds(expr)
        || match &expr.kind {
            ExprKind::Unspecified | ExprKind::Literal(_) | ExprKind::Ident(_) => false,
            ExprKind::Select(select) => below(&select.operand),
            ExprKind::Call(call) => call.receiver.iter().chain(&call.arguments).any(below),
            ExprKind::List(items) => items.iter().any(|item| below(&item.value)),
            ExprKind::Map(entries) => entries.iter().any(|entry| below(&entry.key) || below(&entry.value)),
            ExprKind::Object(_, fields) => fields.iter().any(|field| below(&field.value)),
            ExprKind::Loop(of) => [&of.range, &of.init, &of.condition, &of.step, &of.result].into_iter().any(below),
        }
}

fn environment(variable: &str, name: &str, of: &Arc<Declared>) -> Environment {
    let (objects, of) = Objects::named(of, &format!("kubernetes.{name}"));
    let objects: Arc<dyn Provider> = objects;
    Environment::new(Base::kubernetes(STORED_MINOR)).with_provider(objects).with_variable(variable, of)
}

fn declared(of: DeclaredKind) -> Arc<Declared> {
    Arc::new(Declared { of, elements_max: i64::MAX, bytes_min: 1 })
}

fn simple(of: Type) -> Arc<Declared> {
    declared(DeclaredKind::Simple(of))
}

fn text() -> Arc<Declared> {
    simple(Type::String)
}

fn list(of: Arc<Declared>) -> Arc<Declared> {
    declared(DeclaredKind::List(of))
}

fn map(of: Arc<Declared>) -> Arc<Declared> {
    declared(DeclaredKind::Map(of))
}

fn object(fields: impl IntoIterator<Item = (&'static str, Arc<Declared>)>) -> Arc<Declared> {
    let fields: BTreeMap<Box<str>, _> = fields.into_iter().map(|(name, of)| (name.into(), of)).collect();
    declared(DeclaredKind::Object(fields))
}

/// Returns the type of the specification of a SubjectAccessReview of `authorization.k8s.io/v1`.
fn request() -> Arc<Declared> {
    let requirement = || object([("key", text()), ("operator", text()), ("values", list(text()))]);
    let selector = || object([("rawSelector", text()), ("requirements", list(requirement()))]);
    let texts = ["namespace", "verb", "group", "version", "resource", "subresource", "name"].map(|name| (name, text()));
    let selectors = ["fieldSelector", "labelSelector"].map(|name| (name, selector()));
    object([
        ("resourceAttributes", object(texts.into_iter().chain(selectors))),
        ("nonResourceAttributes", object([("path", text()), ("verb", text())])),
        ("user", text()),
        ("groups", list(text())),
        ("extra", map(list(text()))),
        ("uid", text()),
    ])
}

/// Returns the type `UserInfo` of `authentication.k8s.io/v1`.
fn user() -> Arc<Declared> {
    object([("username", text()), ("uid", text()), ("groups", list(text())), ("extra", map(list(text())))])
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn truth(text: &str, subject: Subject, tree: &Tree) -> Result<bool, String> {
        let expression = Expression::compile(text, subject, true).map_err(|refused| format!("{refused:?}"))?;
        let found = expression.evaluate(tree).map_err(|error| error.to_string())?;
        Ok(found.as_bool().unwrap())
    }

    #[test]
    fn conditions_see_the_request() {
        let request = value!({"user": "ann", "groups": ["a", "b"], "uid": "", "extra": {},
            "resourceAttributes": {"namespace": "n", "verb": "get",
                "labelSelector": {"requirements": [{"key": "k", "operator": "In", "values": ["v"]}]}}});
        let holds = |text: &str| truth(text, Subject::Request, &request);
        assert_eq!(holds("request.user == 'ann' && 'b' in request.groups"), Ok(true));
        assert_eq!(holds("has(request.resourceAttributes) && request.resourceAttributes.namespace == 'n'"), Ok(true));
        let selected = "request.resourceAttributes.labelSelector.requirements.exists(r, r.key == 'k')";
        assert_eq!(holds(selected), Ok(true));
        assert_eq!(
            holds("request.nonResourceAttributes.path == '/'"),
            Err("no such key: nonResourceAttributes".into())
        );
        assert!(holds("request.nothing == ''").unwrap_err().contains("undefined field 'nothing'"));
        assert_eq!(
            Expression::compile("request.user", Subject::Request, true).unwrap_err(),
            Refused::Type(Type::String)
        );
    }

    #[test]
    fn claims_have_any_type() {
        let claims = value!({"sub": "ann", "email_verified": true, "n": {"a": [1, 2]}, "a.b": {"c-d": 1}});
        let holds = |text: &str| truth(text, Subject::Claims, &claims);
        assert_eq!(holds("claims.sub == 'ann' && claims.?email_verified.orValue(true) == true"), Ok(true));
        assert_eq!(holds("claims.n.a.size() == 2"), Ok(true));
        assert_eq!(holds("claims.a__dot__b.c__dash__d == 1 && has(claims.a__dot__b)"), Ok(true));
        let selects =
            |text: &str| Expression::compile(text, Subject::Claims, false).unwrap().selects("claims", "email");
        assert!(selects("claims.email") && selects("claims.?email.orValue('')") && selects("[claims.email + 'x'][0]"));
        assert!(!selects("claims.sub") && !selects("claims.n.email") && !selects("claims['email']"));
    }

    #[test]
    fn rules_see_the_user() {
        let user = value!({"username": "ann", "uid": "", "groups": ["a"], "extra": {"k": ["v"]}});
        let holds = |text: &str| truth(text, Subject::User, &user);
        assert_eq!(holds("!user.username.startsWith('system:') && user.extra['k'][0] == 'v'"), Ok(true));
        assert_eq!(holds("user.groups.all(group, !group.startsWith('system:'))"), Ok(true));
    }
}
