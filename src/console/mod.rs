//! The console: a page that shows how a member is, for browsers. It changes nothing.
//!
//! The page is made on the server of an [`Overview`](crate::overview::Overview), works without script by being loaded
//! again, and is brought up to date by server-sent events where there is script. Whoever sees it is authenticated and
//! authorized as for every other path, or comes by a link that `flotilla console` asked for.

mod command;
mod links;
mod page;
mod parts;
mod policy;
mod sections;

pub use command::{Console, ConsoleError, Link};
pub use links::Links;
pub use page::{event, opened, page, refused};
pub use policy::{cookie, from_cookies, headers};

/// GET: the page.
pub const PAGE_PATH: &str = "/console";
/// GET: what changes in it, as server-sent events.
pub const EVENTS_PATH: &str = "/console/events";
/// POST: makes a [`Link`].
pub const LINKS_PATH: &str = "/console/links";
/// GET, with `token=` as its query: what a link leads to, for whoever has it.
pub const OPEN_PATH: &str = "/console/open";

/// A part of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The page.
    Page,
    /// What changes in it.
    Events,
    /// Links by which browsers come.
    Links,
}

impl Part {
    /// The part that is at a path, if one is.
    pub fn of(path: &str) -> Option<Self> {
        match path {
            PAGE_PATH => Some(Self::Page),
            EVENTS_PATH => Some(Self::Events),
            LINKS_PATH => Some(Self::Links),
            _ => None,
        }
    }

    /// The one method that it has.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Page | Self::Events => "GET",
            Self::Links => "POST",
        }
    }
}
