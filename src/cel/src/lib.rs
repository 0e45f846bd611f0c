//! The Common Expression Language as Kubernetes speaks it: expressions are parsed, checked against declared types, priced,
//! planned once, and evaluated over the server's own trees. Knows nothing of HTTP or of what is stored.

pub mod cost;
pub mod error;
pub mod functions;
pub mod library;
pub mod schema;
pub mod types;
pub mod value;
