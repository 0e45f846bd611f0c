//! Compiles the expressions of a policy.

use flotilla_cel::check::Checked;
use flotilla_cel::eval::Program;
use flotilla_cel::types::Type;

use super::environment::{Declared, JSON_PATCH, Name, OBJECT, OptionalNames, VariableTypes, environment};
use crate::limits::VARIABLE_TYPE_LEVELS;

/// The type that an expression must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// A boolean.
    Bool,
    /// A string.
    String,
    /// A string or null.
    StringOrNull,
    /// An apply configuration.
    Object,
    /// A list of JSON patch operations.
    Patches,
    /// Any type.
    Any,
}

impl Wanted {
    fn types(self) -> Vec<Type> {
        match self {
            Self::Bool => vec![Type::Bool],
            Self::String => vec![Type::String],
            Self::StringOrNull => vec![Type::String, Type::Null],
            Self::Object => vec![Type::object(OBJECT)],
            Self::Patches => vec![Type::list(Type::object(JSON_PATCH))],
            Self::Any => Vec::new(),
        }
    }

    /// Returns an error unless the type is allowed.
    fn refuse(self, given: &Type) -> Result<(), Fault> {
        let types = self.types();
        if types.is_empty() || types.contains(given) {
            return Ok(());
        }
        let (names, given): (Vec<String>, _) = (types.iter().map(Type::declared_name).collect(), given.declared_name());
        Err(Fault::Invalid(match &names[..] {
            [one] => format!("must evaluate to {one} but got {given}"),
            several => format!("must evaluate to one of [{}] but got {given}", several.join(" ")),
        }))
    }
}

/// The reason why an expression cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The expression is invalid.
    #[error("{0}")]
    Invalid(String),
    /// Upstream reports this as an internal error.
    #[error("{0}")]
    Internal(String),
}

/// An expression that is ready for evaluation.
#[derive(Debug)]
pub struct Compiled {
    /// The source text.
    pub text: String,
    pub(super) program: Program,
    pub(super) names: Vec<Name>,
}

/// A variable of a policy.
#[derive(Debug)]
pub struct Variable {
    /// Its name in `variables`.
    pub name: Box<str>,
    /// The expression of its value.
    pub compiled: Result<Compiled, Fault>,
}

/// Compiles the expressions of one policy.
#[derive(Debug)]
pub struct Compiler {
    minor: u16,
    declared: Declared,
}

impl Compiler {
    /// Returns a compiler for expressions without variables, which may call the functions of Kubernetes 1.`minor`.
    pub fn new(minor: u16) -> Self {
        Self { minor, declared: Declared::default() }
    }

    /// Returns a compiler for expressions of a policy that may have variables.
    pub fn with_variables(minor: u16) -> Self {
        Self::declaring(minor, Declared { variables: Some(VariableTypes::default()), ..Declared::default() })
    }

    /// Returns a compiler for expressions with these declarations.
    pub fn declaring(minor: u16, declared: Declared) -> Self {
        Self { minor, declared }
    }

    /// Changes the version whose functions expressions may call.
    pub fn set_minor(&mut self, minor: u16) {
        self.minor = minor;
    }

    /// Checks an expression and returns its type.
    ///
    /// # Errors
    /// The error in the expression, as cel-go formats it.
    pub fn check(&self, text: &str, sees: OptionalNames) -> Result<Type, String> {
        let (environment, _) = environment(self.minor, sees, &self.declared);
        Checked::of(text, &environment).map(|checked| checked.output().clone())
    }

    /// Compiles an expression.
    ///
    /// # Errors
    /// The expression is invalid, or has another type than `wanted`.
    pub fn compile(&self, text: &str, wanted: Wanted, sees: OptionalNames) -> Result<Compiled, Fault> {
        self.compile_typed(text, wanted, sees).map(|(compiled, _)| compiled)
    }

    /// Compiles a variable. Expressions compiled later may use it, even if it does not compile.
    pub fn variable(&mut self, name: &str, text: &str, sees: OptionalNames) -> Variable {
        let (compiled, of) = match self.compile_typed(text, Wanted::Any, sees) {
            Ok((compiled, of)) => (Ok(compiled), of),
            Err(fault) => (Err(fault), Type::Dyn),
        };
        self.declare(name, &of);
        Variable { name: name.into(), compiled }
    }

    /// Declares a variable for expressions compiled later.
    pub fn declare(&mut self, name: &str, of: &Type) {
        self.declared.variables.get_or_insert_default().declare(name, known(of, VARIABLE_TYPE_LEVELS));
    }

    fn compile_typed(&self, text: &str, wanted: Wanted, sees: OptionalNames) -> Result<(Compiled, Type), Fault> {
        let (environment, names) = environment(self.minor, sees, &self.declared);
        let checked = Checked::of(text, &environment)
            .map_err(|issues| Fault::Invalid(format!("compilation failed: {issues}")))?;
        wanted.refuse(checked.output())?;
        let program = Program::new(&checked, &environment)
            .map_err(|error| Fault::Internal(format!("program instantiation failed: {error}")))?;
        Ok((Compiled { text: text.to_owned(), program, names }, checked.output().clone()))
    }
}

/// Returns the type under which a variable is declared: plain types, and lists and maps of them. Everything else is
/// `Dyn`, and so are types that nest too deep.
fn known(of: &Type, levels: usize) -> Type {
    let Some(below) = levels.checked_sub(1) else { return Type::Dyn };
    match of {
        Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => of.clone(),
        Type::List(element) => Type::list(known(element, below)),
        Type::Map(entry) => Type::map(known(&entry.0, below), known(&entry.1, below)),
        _ => Type::Dyn,
    }
}
