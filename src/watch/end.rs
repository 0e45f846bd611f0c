//! Ends watches before their time.

use crate::custom::GracePeriod;
use crate::drain::Drain;
use crate::served::Served;

/// The stop of the server, or the end of the definition of the watched resource.
#[derive(Clone)]
pub struct End {
    server: Drain,
    definition: Option<GracePeriod>,
}

impl End {
    /// Returns the end of watches of a resource.
    pub fn of(server: Drain, served: &Served) -> Self {
        Self { server, definition: served.custom.as_ref().map(|custom| custom.definition().grace.clone()) }
    }

    /// Returns whether it has happened.
    pub fn has_come(&self) -> bool {
        self.server.has_begun() || self.definition.as_ref().is_some_and(GracePeriod::is_over)
    }

    /// Waits until it happens.
    pub async fn comes(self) {
        let server = self.server.begun();
        let Some(definition) = self.definition else { return server.await };
        tokio::select! {
            () = server => {}
            () = definition.over() => {}
        }
    }
}
