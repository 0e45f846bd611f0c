//! The Common Expression Language as Kubernetes speaks it: expressions are parsed, checked against declared types,
//! priced, planned once, and evaluated over the server's own trees. Knows nothing of HTTP or of what is stored.
//!
//! [`check::Checked::of`] is the one way from a text to a checked expression. Expressions at the bounds of [`limits`]
//! take much of the stack; whatever walks one finds [room](with_room) for that.

pub mod check;
pub mod cost;
pub mod device;
pub mod environment;
pub mod error;
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
