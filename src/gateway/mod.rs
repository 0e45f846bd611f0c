//! HTTP: from a request to what it asks for, and from a result to an answer.

mod actor;
mod admittance;
pub mod answer;
mod attempt;
mod audit;
mod backup;
mod beginning;
pub mod body;
mod caller;
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
pub mod negotiate;
mod path;
mod published;
pub mod query;
mod resources;
mod routing;
mod server;
mod uploads;
mod verb;

pub use caller::Caller;
pub use negotiate::{Form, Media, Offer, Representation};
pub use server::{Gateway, StartError};
