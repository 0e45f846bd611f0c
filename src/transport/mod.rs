//! Connections: from a listening socket to requests, and what is written to them.

mod gathered;
mod server;

pub use gathered::Gathered;
pub use server::start;
