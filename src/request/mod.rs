//! What a request says: its path, verb, query, the representation that it wants, and who makes it.
//!
//! Handlers of requests build on this room; nothing here knows of them.

pub mod caller;
pub mod negotiate;
pub mod path;
pub mod query;
pub mod verb;

pub use caller::Caller;
pub use negotiate::{Form, Media, Offer, Representation};
