//! The Common Expression Language (CEL) as Kubernetes uses it. Expressions are parsed, checked against declared types,
//! estimated, planned once, and evaluated on the server's own trees. The crate does not depend on HTTP or storage.
//!
//! [`check::Checked::of`] is the only way from a text to a checked expression. Expressions at the bounds of [`limits`]
//! need much stack, so code that recurses over an expression runs in [`with_room`].
//!
//! # Order
//!
//! A module imports only modules that are named before it here; `tests/layers.rs` of the workspace checks that.
//!
//! - Bounds, and tools of all stages: `limits`, `stack`, `number`, `error`, `source`
//! - Types and values: `types`, `value`
//! - From a text to a tree: `syntax`
//! - The functions, with the cost of their calls: `cost`, `functions`, `library`
//! - The environment of expressions, their types, and their cost: `environment`, `check`, `estimate`
//! - Constants are evaluated while a rule is planned, and plans are evaluated, each asking the other: `plan`, `eval`
//! - The uses that Kubernetes makes of expressions: `schema`, `access`, `device`

pub mod access;
pub mod check;
pub mod cost;
pub mod device;
pub mod environment;
pub mod error;
pub mod estimate;
pub mod eval;
pub mod functions;
pub mod library;
pub mod limits;
mod number;
mod plan;
pub mod schema;
pub mod source;
mod stack;
pub mod syntax;
pub mod types;
pub mod value;

pub use number::shortest as double_text;
pub use stack::with_room;
