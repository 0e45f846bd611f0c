//! Watching: a change wakes only the subscribers that it concerns, after all of them have been notified.

mod interest;
mod notifying;
mod subscribers;

pub use self::interest::Interest;
pub(crate) use self::notifying::notify;
pub use self::notifying::wake_after_notifying;
pub use self::subscribers::LaggingSubscriber;
pub(crate) use self::subscribers::{Signal, Subscribers};
