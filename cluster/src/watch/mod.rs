//! Watching: cursors into change logs, woken only by the changes that concern them.

mod interest;
mod subscribers;
mod subscription;
mod telling;

pub use self::interest::Interest;
pub use self::subscribers::LaggingSubscriber;
pub(crate) use self::subscribers::{Signal, Subscribers};
pub use self::subscription::Subscription;
pub(crate) use self::telling::tell;
pub use self::telling::wake_when_told;
