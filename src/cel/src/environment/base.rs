//! The functions and types of environments, created once and shared.
#![expect(clippy::disallowed_types, reason = "this crate has no other lock; a poisoned one is taken as it is")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use super::{FunctionDecl, OverloadDecl};
use crate::functions::{Library, Since};
use crate::library::LIBRARIES;
use crate::syntax::Dialect;
use crate::types::{Signature, Type};

/// The functions and types that an environment has.
#[derive(Clone, Debug)]
pub struct Base {
    pub(crate) functions: HashMap<Arc<str>, Arc<FunctionDecl>>,
    pub(crate) types: HashMap<Arc<str>, Type>,
    /// The supported syntax.
    pub dialect: Dialect,
    /// See [`super::Environment::homogeneous`].
    pub homogeneous: bool,
    /// Whether literals of durations, timestamps, patterns and formats are checked at compilation.
    pub checks_literals: bool,
    /// Whether numbers of different types may be compared.
    pub compares_numbers: bool,
}

/// The names of the types that every environment has.
const TYPES: [(&str, Type); 10] = [
    ("bool", Type::Bool),
    ("bytes", Type::Bytes),
    ("double", Type::Double),
    ("google.protobuf.Duration", Type::Duration),
    ("int", Type::Int),
    ("null_type", Type::Null),
    ("string", Type::String),
    ("google.protobuf.Timestamp", Type::Timestamp),
    ("type", Type::Type(None)),
    ("uint", Type::Uint),
];

impl Base {
    /// Returns a base with these libraries.
    pub fn new(libraries: &[&'static Library], dialect: Dialect) -> Self {
        let mut types: HashMap<Arc<str>, Type> = TYPES.iter().map(|(name, of)| ((*name).into(), of.clone())).collect();
        types.insert("list".into(), Type::list(Type::Dyn));
        types.insert("map".into(), Type::map(Type::Dyn, Type::Dyn));
        let mut base = Self {
            functions: HashMap::new(),
            types,
            dialect,
            homogeneous: false,
            checks_literals: false,
            compares_numbers: true,
        };
        libraries.iter().for_each(|library| base.add_library(library));
        base
    }

    pub(crate) fn add_library(&mut self, library: &'static Library) {
        for function in library.functions {
            for overload in function.overloads {
                // The test of the tables finds malformed signatures.
                let Some(signature) = Signature::read(overload.signature) else { continue };
                self.add_types(&signature);
                let native = Some(overload);
                self.add(function.name, OverloadDecl { native, ..OverloadDecl::declared(overload.id, signature) });
            }
        }
    }

    /// Returns the base with all libraries of Kubernetes 1.`minor`.
    pub fn kubernetes(minor: u16) -> Arc<Self> {
        static MADE: OnceLock<Mutex<HashMap<u16, Arc<Base>>>> = OnceLock::new();
        let made = MADE.get_or_init(Mutex::default);
        let mut made = made.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        made.entry(minor).or_insert_with(|| Arc::new(Self::of_kubernetes(minor))).clone()
    }

    fn of_kubernetes(minor: u16) -> Self {
        let libraries: Vec<&Library> =
            LIBRARIES.iter().copied().filter(|library| library.since.includes(minor)).collect();
        let dialect = Dialect {
            macros: true,
            optional_syntax: Since::Minor(28).includes(minor),
            two_variables: Since::Minor(32).includes(minor),
            bind: false,
            exists_one: false,
            sort_by: Since::Minor(34).includes(minor),
            quoted_names: false,
            bounds: crate::limits::PARSER,
        };
        let checks_literals = Since::Minor(29).includes(minor);
        let compares_numbers = Since::Minor(28).includes(minor);
        Self { homogeneous: false, checks_literals, compares_numbers, ..Self::new(&libraries, dialect) }
    }

    pub(crate) fn add(&mut self, name: &str, overload: OverloadDecl) {
        let new = || Arc::new(FunctionDecl { name: name.into(), overloads: Vec::new() });
        let function = self.functions.entry(name.into()).or_insert_with(new);
        let overloads = &mut Arc::make_mut(function).overloads;
        if overloads.iter().all(|each| each.id != overload.id) {
            overloads.push(Arc::new(overload));
        }
    }

    /// Adds the names of extensions' types, which expressions may use.
    fn add_types(&mut self, signature: &Signature) {
        for of in signature.arguments.iter().chain([&signature.result]) {
            if let Type::Opaque(_) | Type::Object(_) = of {
                self.types.entry(of.runtime_name().into()).or_insert_with(|| of.clone());
            }
        }
    }
}
