//! Connections of clients: accepts them, reads their requests, and sends the answers.

mod batching_stream;
mod chunked;
mod client_side;
mod connection_id;
mod connections;
mod frames;
mod graceful_close;
mod head;
mod inbound;
mod outlet;
mod restored;
mod server;

pub use batching_stream::BatchingStream;
pub use client_side::{ClientSide, RawBytes};
pub use connection_id::ConnectionId;
pub use connections::Connections;
pub use head::RawTarget;
pub use outlet::{Outlet, Wait};
pub use server::{start, stop};
