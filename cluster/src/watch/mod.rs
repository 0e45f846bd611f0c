//! Watching: cursors into change logs, woken only by the changes that concern them.

mod interest;
mod notifying;
mod subscribers;
mod subscription;

pub use self::interest::Interest;
pub(crate) use self::notifying::notify;
pub use self::notifying::wake_after_notifying;
pub use self::subscribers::LaggingSubscriber;
pub(crate) use self::subscribers::{Signal, Subscribers};
pub use self::subscription::Subscription;
