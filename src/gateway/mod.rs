//! HTTP: from a request to what it asks for, and from a result to an answer.

mod actor;
mod admittance;
mod attempt;
mod audit;
mod backup;
mod beginning;
pub mod body;
mod console;
mod definitions;
mod deprecation;
mod documents;
mod doors;
mod elsewhere;
pub mod flow;
mod former;
mod handler;
pub mod lists;
mod members;
mod messages;
mod overview;
mod published;
mod resources;
mod routing;
mod server;
mod uploads;
mod watches;

pub use server::Gateway;
