//! Connections: from a listening socket to requests, and what is written to them.

mod connection_id;
mod gathered;
mod server;

pub use connection_id::ConnectionId;
pub use gathered::Gathered;
pub use server::start;
