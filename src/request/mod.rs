//! Reads requests: path, verb, query, the representation that is asked for, and the client.
//!
//! Handlers of requests depend on this module, which does not know them.

pub mod basis;
pub mod caller;
pub mod identity;
pub mod negotiate;
pub mod notices;
pub mod path;
pub mod query;
pub mod record;
pub mod verb;

pub use basis::Basis;
pub use caller::{Caller, Unauthorized};
pub use identity::Identity;
pub use negotiate::{Form, Media, Offer, Representation};
pub use notices::Notices;
pub use record::Record;
