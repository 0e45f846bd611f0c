//! Requests to the leader of a group, wherever it is.
//!
//! - [`leader_client`] finds the leader and makes requests to it; [`write_messages`] converts writes for the messages
//!   between them, [`latest_attempts`] helps the leader to make a repeated write only once.
//! - [`reads`] lets reads that wait for a read point share one question. [`closer`] passes on requests to close the
//!   group, [`administering`] those to change its members or its leader.

mod administering;
pub(super) mod closer;
mod latest_attempts;
pub(super) mod leader_client;
pub(super) mod reads;
pub(super) mod write_messages;
