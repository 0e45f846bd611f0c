//! The Common Expression Language as Kubernetes speaks it: expressions are parsed, checked against declared types,
//! priced, planned once, and evaluated over the server's own trees. Knows nothing of HTTP or of what is stored.
//!
//! Expressions at the bounds of [`limits`] take less than 4 MiB of the stack in builds without optimization. Evaluating
//! sees to that room itself where it is needed, compiling is to be done [`with_room`].

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
