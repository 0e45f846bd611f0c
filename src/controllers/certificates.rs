//! Approves certificate requests of nodes that may have a client certificate, and signs approved requests as the
//! signers that Kubernetes defines (Kubernetes documentation, "TLS bootstrapping" and "Certificate Signing Requests").

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flotilla_cluster::Interest;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::agent::Agent;
use super::queue::{Queue, Requeue};
use crate::access::{Attributes, Inquiry, ResourceAttributes, User};
use crate::follow::follow;
use crate::kinds::certificates::signers::{NODE_CLIENT, Requested};
use crate::limits;
use crate::metrics::queues::QueueMetrics;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::tables::Target;

const GROUP: &str = "certificates.k8s.io";
const RESOURCE: &str = "certificatesigningrequests";

/// Permissions: the subresource that a user may `create`, and the message of the approval. A node's request is approved
/// if its user has one of them. The first one counts only if the node asks for its own certificate.
const PERMISSIONS: [(&str, &str); 2] = [
    ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview."),
    ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."),
];

/// Approves requests of nodes.
pub async fn approve(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let agent = &agent;
    each(agent, measured, |served, request| async move { approve_one(agent, &served, &request).await }).await
}

/// Issues the certificates of approved requests.
pub async fn sign(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let agent = &agent;
    each(agent, measured, |served, request| async move { sign_one(agent, &served, &request).await }).await
}

/// Calls `attempt` for each request, now and whenever it has changed.
async fn each<F: Future<Output = ApiResult<()>>>(
    agent: &Agent,
    measured: QueueMetrics,
    attempt: impl Fn(Arc<Served>, Value) -> F,
) -> ApiResult<()> {
    let served = agent.resource(GROUP, RESOURCE)?;
    let table = agent.registry.tables.table(&served);
    let queue = Queue::new(measured);
    tokio::join!(
        follow(&table, Interest::default(), |seen| {
            if let Some(request) = seen.live() {
                queue.add(request.key().name().to_owned());
            }
        }),
        queue.work(1, |name: String| {
            let (served, attempt) = (&served, &attempt);
            async move {
                let target = Target::object(served, "", &name);
                if let Some(request) = agent.get(target)? {
                    attempt(Arc::clone(served), request).await?;
                }
                Ok(Requeue::Never)
            }
        }),
    );
    Ok(())
}

async fn approve_one(agent: &Agent, served: &Arc<Served>, request: &Value) -> ApiResult<()> {
    if !conditions(request).is_empty() || request.str_at(&["spec", "signerName"]) != NODE_CLIENT {
        return Ok(());
    }
    let Ok(requested) = Requested::of(request) else { return Ok(()) };
    if !matches!(requested.check(NODE_CLIENT, request.list_at(&["spec", "usages"])), Some(Ok(()))) {
        return Ok(());
    }
    let user = requester(request);
    let allowed = |subresource: &str, inquiry: &Inquiry| {
        let (verb, version) = ("create", "*");
        let of =
            ResourceAttributes { verb, group: GROUP, version, resource: RESOURCE, subresource, ..Default::default() };
        agent.registry.tables.authorizer.allows(&user, &Attributes::Resource(of), inquiry)
    };
    let permissions = if user.name == requested.common_name { &PERMISSIONS[..] } else { &PERMISSIONS[1..] };
    let first = |inquiry: &Inquiry| permissions.iter().find(|(subresource, _)| allowed(subresource, inquiry));
    let Some((_, message)) = Inquiry::default().settled(None, first).await else { return Ok(()) };
    add_condition(agent, served, request, "approval", ("Approved", "AutoApproved", message)).await
}

async fn sign_one(agent: &Agent, served: &Arc<Served>, request: &Value) -> ApiResult<()> {
    let has = |kind: &str| conditions(request).iter().any(|condition| condition.str_at(&["type"]) == kind);
    let is_answered = has("Denied") || has("Failed") || !request.str_at(&["status", "certificate"]).is_empty();
    if !has("Approved") || is_answered {
        return Ok(());
    }
    let requested = Requested::of(request).map_err(ApiError::internal)?;
    let usages = request.list_at(&["spec", "usages"]);
    match requested.check(request.str_at(&["spec", "signerName"]), usages) {
        None => return Ok(()),
        Some(Err(why)) => {
            return add_condition(agent, served, request, "status", ("Failed", "SignerValidationFailure", &why)).await;
        }
        Some(Ok(())) => {}
    }
    let usages: Vec<&str> = usages.iter().filter_map(Value::as_str).collect();
    let valid = match request.int_at(&["spec", "expirationSeconds"]) {
        Some(seconds) => Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
            .clamp(limits::SIGNED_VALIDITY_MIN, limits::SIGNED_VALIDITY_MAX),
        None => limits::SIGNED_VALIDITY_MAX,
    };
    let issued = agent.settings.authority.issue_requested(&requested.der, &usages, valid);
    let certificate = STANDARD.encode(issued.map_err(ApiError::internal)?);
    edit(agent, served, request, "status", |object| object.set_at(&["status", "certificate"], &*certificate)).await
}

/// Adds a condition of a type, with a reason and a message.
async fn add_condition(
    agent: &Agent,
    served: &Arc<Served>,
    request: &Value,
    subresource: &str,
    (kind, reason, message): (&str, &str, &str),
) -> ApiResult<()> {
    let condition = value!({"type": kind, "status": "True", "reason": reason, "message": message});
    edit(agent, served, request, subresource, |object| {
        let mut all = conditions(object).to_vec();
        all.push(condition.clone());
        object.set_at(&["status", "conditions"], Value::Array(all));
    })
    .await
}

/// Changes a request, unless another writer has changed it since it was read: that change puts it into the queue again.
async fn edit(
    agent: &Agent,
    served: &Arc<Served>,
    request: &Value,
    subresource: &str,
    mut change: impl FnMut(&mut Value) + Send,
) -> ApiResult<()> {
    let target = Target::object(served, "", request.str_at(&["metadata", "name"])).with_subresource(subresource);
    let seen = request.str_at(&["metadata", "resourceVersion"]);
    let edited = agent.edit_if(target, |object| {
        if object.str_at(&["metadata", "resourceVersion"]) != seen {
            return Err(ApiError::conflict(GROUP, RESOURCE, target.name, "it was changed meanwhile"));
        }
        change(object);
        Ok(())
    });
    match edited.await {
        Err(ApiError { code: 404 | 409, .. }) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    }
}

fn conditions(request: &Value) -> &[Value] {
    request.list_at(&["status", "conditions"])
}

/// Returns the user who made a request.
fn requester(request: &Value) -> User {
    let texts =
        |values: &[Value]| -> Vec<String> { values.iter().filter_map(Value::as_str).map(str::to_owned).collect() };
    let extra = request.map_at(&["spec", "extra"]).into_iter().flat_map(|map| map.iter());
    User {
        name: request.str_at(&["spec", "username"]).into(),
        uid: request.str_at(&["spec", "uid"]).into(),
        groups: texts(request.list_at(&["spec", "groups"])).into_iter().map(Into::into).collect(),
        extra: extra.map(|(key, values)| (key.to_string(), texts(values.as_array().unwrap_or(&[])))).collect(),
    }
}
