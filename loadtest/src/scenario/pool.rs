//! Connections that requests share, opened again when they break.

use std::cell::Cell;
use std::sync::Arc;

use tokio::sync::Mutex;

use crate::connection::{Answer, Call, Client, Connector, Error};

/// A few connections, used by turns.
pub struct Pool {
    connector: Arc<Connector>,
    places: Vec<Mutex<Place>>,
    next: Cell<usize>,
}

#[derive(Default)]
struct Place {
    client: Option<Client>,
    /// How often a connection was opened here.
    opened: u64,
}

impl Pool {
    /// So many connections, none of which is open yet.
    pub fn new(connector: Arc<Connector>, connections: usize) -> Self {
        let places = (0..connections.max(1)).map(|_| Mutex::default()).collect();
        Self { connector, places, next: Cell::new(0) }
    }

    /// Asks over the next connection.
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

    /// Has a connection opened anew, of which somebody found that it is broken, unless that was done since.
    pub async fn broke(&self, number: usize, opened: u64) {
        let mut place = self.places[number].lock().await;
        if place.opened == opened {
            place.client = None;
        }
    }

    /// A client of one of the connections, and how often that was opened.
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
