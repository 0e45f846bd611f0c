//! Ends watches of a custom resource soon after its definition has changed, since they show objects by the old one.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::limits;

/// Signals watches to stop showing objects by a definition. Clones share the signal.
#[derive(Debug, Clone)]
pub struct GracePeriod(Arc<watch::Sender<Option<Instant>>>);

impl Default for GracePeriod {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl GracePeriod {
    /// Begins the grace period, in which watches still send the changes made under the old definition.
    pub fn begin(&self) {
        self.0.send_if_modified(|ends| {
            let is_first = ends.is_none();
            ends.get_or_insert_with(|| Instant::now() + limits::DEFINITION_GRACE);
            is_first
        });
    }

    /// Returns whether the grace period is over.
    pub fn is_over(&self) -> bool {
        self.0.borrow().is_some_and(|ends| Instant::now() >= ends)
    }

    /// Waits until the grace period is over.
    pub async fn over(self) {
        let mut begun = self.0.subscribe();
        // This clone keeps the sender, so that the wait cannot fail.
        let ends = begun.wait_for(Option::is_some).await.map_or(None, |ends| *ends);
        if let Some(ends) = ends {
            sleep_until(ends).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_grace_period_ends_some_time_after_it_began() {
        let (grace, begun) = (GracePeriod::default(), Instant::now());
        let ending = grace.clone();
        tokio::join!(grace.clone().over(), async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            ending.begin();
            assert!(!grace.is_over());
        });
        assert_eq!(begun.elapsed().as_secs(), 60 + limits::DEFINITION_GRACE.as_secs());
        assert!(grace.is_over());
    }
}
