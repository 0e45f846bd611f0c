//! Connections: from a listening socket to requests, and what is written to them.

mod connection_id;
mod connections;
mod farewell;
mod frames;
mod gathered;
mod server;

pub use connection_id::ConnectionId;
pub use connections::Connections;
pub use gathered::Gathered;
pub use server::{start, stop};
