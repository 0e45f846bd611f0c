//! What ends a watch before its time.

use crate::custom::Life;
use crate::drain::Drain;
use crate::served::Served;

/// The end of the server, or of the definition by which a watch shows objects.
#[derive(Clone)]
pub struct End {
    server: Drain,
    definition: Option<Life>,
}

impl End {
    /// Of watches of a resource.
    pub fn of(server: Drain, served: &Served) -> Self {
        Self { server, definition: served.custom.as_ref().map(|custom| custom.definition().life.clone()) }
    }

    /// Whether it has come.
    pub fn has_come(&self) -> bool {
        self.server.has_begun() || self.definition.as_ref().is_some_and(Life::is_over)
    }

    /// Waits until it comes.
    pub async fn comes(self) {
        let server = self.server.begun();
        let Some(definition) = self.definition else { return server.await };
        tokio::select! {
            () = server => {}
            () = definition.over() => {}
        }
    }
}
