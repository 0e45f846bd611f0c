//! HTTP: from a request to what it asks for, and from a result to an answer.

mod actor;
mod audit;
mod backup;
mod beginning;
pub mod body;
mod browsers;
mod console;
mod counted;
mod definitions;
mod deprecation;
mod documents;
mod exchange;
mod flows;
mod handler;
mod head;
mod identification;
mod large_requests;
pub mod lists;
mod members;
mod messages;
mod overview;
mod past_versions;
mod published;
mod reads;
mod recorded;
mod remote;
mod resources;
mod routing;
pub mod seats;
mod server;
mod stages;
mod subresources;
mod uploads;
mod watches;
mod writes;

pub use server::Gateway;
