//! The console: a read-only page for browsers that shows the state of a member.
//!
//! The server makes the page from an [`Overview`](crate::overview::Overview). Server-sent events keep it up to date; a
//! browser without scripts loads it again. Its users are authenticated and authorized as on every other path. A browser
//! without credentials can open a link that `flotilla console` issues; from then on a cookie identifies the browser.

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
/// GET: the events that keep the page up to date.
pub const EVENTS_PATH: &str = "/console/events";
/// POST: issues a [`Link`].
pub const LINKS_PATH: &str = "/console/links";
/// GET with the parameter `token`: opens a link.
pub const OPEN_PATH: &str = "/console/open";

/// A part of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsolePart {
    /// The page.
    Page,
    /// The events that keep the page up to date.
    Events,
    /// The path that issues links.
    Links,
    /// The path of links.
    Open,
}

impl ConsolePart {
    /// Returns the part at a path. Returns `None` for other paths.
    pub fn of(path: &str) -> Option<Self> {
        match path {
            PAGE_PATH => Some(Self::Page),
            EVENTS_PATH => Some(Self::Events),
            LINKS_PATH => Some(Self::Links),
            OPEN_PATH => Some(Self::Open),
            _ => None,
        }
    }

    /// Returns its only method.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Page | Self::Events | Self::Open => "GET",
            Self::Links => "POST",
        }
    }
}
