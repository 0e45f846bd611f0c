//! Requests with a connection of their own: long-running ones, and those that upgrade to another protocol.

use std::sync::Arc;

use http::response::Parts;
use http::{Request, Response, StatusCode};
use hyper::client::conn::http1;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::time::Instant;

use super::long::{LongTarget, Renamed};
use super::pool::of_version_1;
use super::transport::Duplex;
use super::{Answer, Body, Error, Outbound, Peer, wording};
use crate::limits;
use crate::tasks;

/// The bytes of a connection after it was upgraded.
pub type Switched = TokioIo<Upgraded>;

/// The answer to a request with a connection of its own.
#[derive(Debug)]
pub enum Unpooled {
    /// The peer has switched to the protocol that was requested. The bytes after the head are not HTTP.
    Switched(Parts, Switched),
    /// The peer has sent an ordinary answer. The connection is closed after it.
    Answered(Response<Answer>),
}

impl Outbound {
    /// Makes a request over its own HTTP/1.1 connection.
    ///
    /// # Errors
    /// As for [`Outbound::send`].
    pub async fn send_unpooled(
        &self,
        peer: &Peer,
        mut request: Request<Body>,
        deadline: Instant,
    ) -> Result<Unpooled, Error> {
        let stream = self.connect(peer, deadline).await?;
        let ends = Arc::clone(&stream.ends);
        let io: Box<dyn Duplex> = match request.extensions_mut().remove::<LongTarget>() {
            Some(long) => Box::new(Renamed::new(stream.io, request.method(), long)),
            None => stream.io,
        };
        let failed = |error: hyper::Error| wording::request(&error, &ends);
        let exchange = async {
            let (mut sender, connection) = http1::Builder::new()
                .max_buf_size(limits::OUTBOUND_HEAD_BYTES)
                .max_headers(limits::OUTBOUND_HEADERS)
                .handshake(TokioIo::new(io))
                .await
                .map_err(failed)?;
            tasks::detached("connection", async move {
                if let Err(error) = connection.with_upgrades().await {
                    tracing::debug!(%error, "a connection to another server failed");
                }
            });
            let mut response = sender.send_request(of_version_1(request)).await.map_err(failed)?;
            if response.status() != StatusCode::SWITCHING_PROTOCOLS {
                return Ok(Unpooled::Answered(response.map(|body| Answer::new(body, Arc::clone(&ends), None))));
            }
            let upgraded = hyper::upgrade::on(&mut response).await.map_err(failed)?;
            Ok(Unpooled::Switched(response.into_parts().0, TokioIo::new(upgraded)))
        };
        tokio::time::timeout_at(deadline, exchange).await.unwrap_or(Err(Error::Deadline))
    }
}
