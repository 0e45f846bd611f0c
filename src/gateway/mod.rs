//! HTTP: from a request to what it asks for, and from a result to an answer.

pub mod negotiate;
pub mod query;
