//! Reads requests: path, verb, query, options, the wanted representation, and the client.
//!
//! Handlers of requests depend on this module, which does not know them.

pub mod basis;
pub mod caller;
pub mod identity;
pub mod negotiate;
pub mod notices;
mod options;
pub mod path;
pub mod query;
pub mod record;
pub mod unsafe_deletion;
pub mod verb;

pub use basis::Basis;
pub use caller::{Caller, Unauthorized};
pub use identity::Identity;
pub use negotiate::{Form, Media, Offer, Representation};
pub use notices::Notices;
pub use options::{DeleteOptions, FieldValidation, Propagation, WriteOptions};
pub use record::Record;
