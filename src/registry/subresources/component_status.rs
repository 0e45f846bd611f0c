//! Serves ComponentStatuses, by which older tools see whether a cluster is healthy. Deprecated since Kubernetes 1.19.

use flotilla_proto::value;
use flotilla_proto::value::Value;
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, join_all};
use http::header::HOST;
use tokio::time::Instant;

use super::Registry;
use crate::limits;
use crate::outbound::{self, Error, Network, Outbound, Peer, Secure, Trust};

/// Components that run as processes of their own, and the local port of their health endpoint.
const COMPONENTS: [(&str, u16); 2] = [("scheduler", 10259), ("controller-manager", 10257)];
/// The name under which clients expect the storage.
const STORAGE: &str = "etcd-0";

/// Asks all components for their health. The storage is part of this server, so it is healthy if this answers.
pub(super) fn all(registry: &Registry) -> LocalBoxFuture<'_, Vec<Value>> {
    async move {
        let asked = COMPONENTS.map(|(name, port)| async move {
            let (is_healthy, message) = ask(&registry.tables.outbound, port).await;
            status(name, is_healthy, &message)
        });
        let mut all = join_all(asked).await;
        all.push(status(STORAGE, true, "ok"));
        all
    }
    .boxed_local()
}

/// Asks the component at a port for its health. Returns whether it is healthy, and its answer or the error.
async fn ask(outbound: &Outbound, port: u16) -> (bool, String) {
    let host = "127.0.0.1".to_owned();
    let secure = Secure { server_name: host.clone(), trust: Trust::Anybody, identity: None, http2: false };
    let peer = Peer { host, port, network: Network::Direct, guarded: false, secure: Some(secure) };
    let asked = async {
        let request = http::Request::get("/healthz").header(HOST, peer.address()).body(outbound::empty());
        let request = request.map_err(|error| Error::Dial(error.to_string()))?;
        let deadline = Instant::now() + limits::COMPONENT_TIMEOUT;
        let answer = outbound.send(&peer, request, deadline).await?;
        let status = answer.status().as_u16();
        let reading = outbound::read(answer.into_body(), limits::COMPONENT_ANSWER_BYTES);
        let body = tokio::time::timeout_at(deadline, reading).await.unwrap_or(Err(Error::Deadline))?;
        Ok::<_, Error>((status, body))
    };
    match asked.await {
        Ok((200..400, body)) => (true, String::from_utf8_lossy(&body).into_owned()),
        Ok((status, _)) => (false, format!("HTTP probe failed with statuscode: {status}")),
        Err(error) => (false, format!("Get \"https://{}/healthz\": {error}", peer.address())),
    }
}

fn status(name: &str, is_healthy: bool, message: &str) -> Value {
    let healthy = if is_healthy { "True" } else { "False" };
    value!({
        "kind": "ComponentStatus",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "conditions": [{"type": "Healthy", "status": healthy, "message": message}]
    })
}
