//! Removes expired objects: CertificateSigningRequests and bootstrap tokens.
//!
//! The time of expiry follows from the object alone, so each object waits in the queue until then.

use std::rc::Rc;
use std::time::Duration;

use flotilla_cluster::{Interest, Object};
use flotilla_proto::time::Timestamp;
use flotilla_proto::value::Value;

use super::agent::Agent;
use super::queue::{Queue, Requeue};
use crate::follow::follow;
use crate::kinds::expiry;
use crate::limits;
use crate::metrics::queues::QueueMetrics;
use crate::registry::now;
use crate::request::DeleteOptions;
use crate::status::ApiResult;
use crate::tables::{Target, stored_value};

/// A resource whose objects expire.
struct Ending {
    group: &'static str,
    resource: &'static str,
    interest: fn() -> Interest,
    /// Returns when an object expires. `None` if it never does.
    ends_at: fn(&Value) -> Option<Timestamp>,
}

static CERTIFICATE_REQUESTS: Ending = Ending {
    group: "certificates.k8s.io",
    resource: "certificatesigningrequests",
    interest: Interest::default,
    ends_at: expiry::of_certificate_request,
};

static BOOTSTRAP_TOKENS: Ending = Ending {
    group: "",
    resource: "secrets",
    interest: || Interest {
        namespace: Some(expiry::BOOTSTRAP_TOKEN_NAMESPACE.into()),
        field: Some(("type".into(), expiry::BOOTSTRAP_TOKEN_TYPE.into())),
        ..Interest::default()
    },
    ends_at: expiry::of_bootstrap_token,
};

/// Removes CertificateSigningRequests that were answered some time ago, or that nobody has answered.
pub async fn certificate_requests(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    run(agent, measured, &CERTIFICATE_REQUESTS).await
}

/// Removes expired bootstrap tokens.
pub async fn bootstrap_tokens(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    run(agent, measured, &BOOTSTRAP_TOKENS).await
}

async fn run(agent: Rc<Agent>, measured: QueueMetrics, ending: &'static Ending) -> ApiResult<()> {
    let served = agent.resource(ending.group, ending.resource)?;
    let table = agent.registry.tables.table(&served);
    let queue = Queue::new(measured);
    let look_at = |object: &Object| {
        let Ok(value) = stored_value(object) else { return };
        if let Some(end) = (ending.ends_at)(&value) {
            let (namespace, name) = (object.key().namespace().unwrap_or(""), object.key().name());
            queue.add_after((namespace.to_owned(), name.to_owned()), remaining(end).max(limits::EXPIRY_SETTLE));
        }
    };
    tokio::join!(
        follow(&table, (ending.interest)(), |seen| {
            if let Some(object) = seen.live() {
                look_at(object);
            }
        }),
        queue.work(1, |(namespace, name): (String, String)| {
            let (agent, served) = (&agent, &served);
            async move {
                let target = Target::object(served, &namespace, &name);
                let Some(object) = agent.get(target)? else { return Ok(Requeue::Never) };
                // The object may have changed since, and expire at another time.
                let Some(end) = (ending.ends_at)(&object) else { return Ok(Requeue::Never) };
                let rest = remaining(end);
                if !rest.is_zero() {
                    return Ok(Requeue::After(rest));
                }
                let uid = Some(object.str_at(&["metadata", "uid"]).to_owned());
                agent.delete(target, &DeleteOptions { uid, ..DeleteOptions::default() }).await?;
                Ok(Requeue::Never)
            }
        }),
    );
    Ok(())
}

/// Returns the time until the second of `end` is over.
fn remaining(end: Timestamp) -> Duration {
    Duration::from_secs(u64::try_from(end.seconds.saturating_add(1).saturating_sub(now().seconds)).unwrap_or(0))
}
