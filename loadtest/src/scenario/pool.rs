//! Connections that requests share. A broken connection is opened again.

use std::cell::Cell;
use std::sync::Arc;

use tokio::sync::Mutex;

use crate::connection::{Answer, Call, Client, Connector, Error};

/// Connections that requests use in turn.
pub struct Pool {
    connector: Arc<Connector>,
    places: Vec<Mutex<Place>>,
    next: Cell<usize>,
}

#[derive(Default)]
struct Place {
    client: Option<Client>,
    /// How many times this connection has been opened.
    opened: u64,
}

impl Pool {
    /// Makes a pool of connections, none of which is open yet.
    pub fn new(connector: Arc<Connector>, connections: usize) -> Self {
        let places = (0..connections.max(1)).map(|_| Mutex::default()).collect();
        Self { connector, places, next: Cell::new(0) }
    }

    /// Sends a request on the next connection.
    pub async fn call(&self, call: &Call) -> Result<Answer, Error> {
        let number = self.next.get();
        self.next.set((number + 1) % self.places.len());
        let (mut client, opened) = self.place(number).await?;
        let answer = client.call(call).await;
        if matches!(answer, Err(Error::Http(_) | Error::Io(_))) {
            self.broke(number, opened).await;
        }
        answer
    }

    /// Closes a connection that a client found to be broken, unless it has been opened again since.
    pub async fn broke(&self, number: usize, opened: u64) {
        let mut place = self.places[number].lock().await;
        if place.opened == opened {
            place.client = None;
        }
    }

    /// Returns a client of a connection, and how many times that connection has been opened.
    pub async fn client(&self, number: usize) -> Result<(Client, u64), Error> {
        let number = number % self.places.len();
        self.place(number).await
    }

    async fn place(&self, number: usize) -> Result<(Client, u64), Error> {
        let mut place = self.places[number].lock().await;
        let client = match &place.client {
            Some(client) => client.another().await?,
            None => {
                let client = self.connector.open().await?;
                let another = client.another().await?;
                place.client = Some(client);
                place.opened += 1;
                another
            }
        };
        Ok((client, place.opened))
    }
}
