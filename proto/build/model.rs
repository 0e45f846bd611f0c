//! The contents of the catalogue's text, before they become tables.

/// A group that discovery shows, with its versions by priority.
#[derive(Debug)]
pub struct Group {
    pub name: String,
    pub versions: Vec<String>,
}

/// The resources and types of one API version.
#[derive(Debug)]
pub struct Package {
    pub alias: String,
    pub openapi: String,
    /// Empty when the package's types are served under no version.
    pub api_version: String,
    pub resources: Vec<Resource>,
    pub types: Vec<Type>,
    pub mirrors: Vec<Mirror>,
}

/// Resources of another package that a package serves with the same fields.
#[derive(Debug)]
pub struct Mirror {
    pub alias: String,
    pub resources: Vec<String>,
    pub position: SourcePosition,
}

#[derive(Debug, Clone)]
pub struct Resource {
    pub name: String,
    pub singular: String,
    pub kind: String,
    pub namespaced: bool,
    pub verbs: Vec<String>,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub hash: String,
    pub list_kind: String,
    pub subresources: Vec<Subresource>,
    pub columns: Vec<Column>,
    pub position: SourcePosition,
}

#[derive(Debug, Clone)]
pub struct Subresource {
    pub name: String,
    /// API version of the kind; empty for the resource's own.
    pub api_version: String,
    pub kind: String,
    pub verbs: Vec<String>,
    pub tables: bool,
}

#[derive(Debug, Clone)]
pub struct Column {
    pub priority: i32,
    pub kind: String,
    pub format: String,
    pub name: String,
    pub description: String,
}

#[derive(Debug, Clone)]
pub struct Type {
    pub name: String,
    /// The API versions in which the type is a kind.
    pub kinds: Vec<String>,
    pub atomic: bool,
    pub json_only: bool,
    pub unions: Vec<Union>,
    pub members: Vec<Member>,
    pub description: String,
    pub position: SourcePosition,
}

#[derive(Debug, Clone)]
pub struct Union {
    pub discriminator: String,
    pub members: Vec<(String, String)>,
}

/// A line of a type.
#[derive(Debug, Clone)]
pub enum Member {
    Field(Field),
    Embedded { number: u32, target: String, position: SourcePosition },
}

#[derive(Debug, Clone)]
pub struct Field {
    pub number: u32,
    pub name: String,
    pub shape: Shape,
    pub always: bool,
    pub pointer: bool,
    pub required: bool,
    pub atomic: bool,
    pub granular: bool,
    pub set: bool,
    pub keys: Vec<String>,
    pub merge: bool,
    pub merge_key: Option<String>,
    pub retain_keys: bool,
    pub replace: bool,
    pub enumeration: Vec<String>,
    pub default: Option<String>,
    pub description: String,
    pub position: SourcePosition,
}

/// The type of a field, list item or map value.
#[derive(Debug, Clone)]
pub enum Shape {
    /// A scalar or free-form type, as Rust source.
    Plain(&'static str),
    /// A string with its Go type, which may be empty.
    String(String),
    /// A type, named as in the text.
    Struct(String),
    List {
        named: String,
        boxed: bool,
        pointers: bool,
        item: Box<Shape>,
    },
    Map {
        named: String,
        value: Box<Shape>,
    },
}

/// Where something was read.
#[derive(Debug, Clone, Default)]
pub struct SourcePosition {
    pub file: String,
    pub line: usize,
}

/// A fault in the catalogue and its position.
#[derive(Debug)]
pub struct Error {
    pub position: SourcePosition,
    pub message: String,
}

impl SourcePosition {
    /// Returns an error at this position.
    pub fn error(&self, message: impl Into<String>) -> Error {
        Error { position: self.clone(), message: message.into() }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:{}: {}", self.position.file, self.position.line, self.message)
    }
}
