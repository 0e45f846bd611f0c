//! Records on which day tokens in Secrets were last used, and removes unused tokens that Kubernetes generated without a
//! request (KEP-2799).

use std::rc::Rc;
use std::sync::Arc;

use flotilla_cluster::{Scope, Selection};
use flotilla_proto::time::Timestamp;
use flotilla_proto::value::Value;

use super::agent::Agent;
use super::queue::{Queue, Requeue};
use super::token_secrets::{ACCOUNT_NAME, ACCOUNT_UID, token_type};
use crate::access::nodes::names_secret;
use crate::access::tokens::{INVALID_SINCE, LAST_USED, SECONDS_PER_DAY, Use, day_of};
use crate::bootstrap::LEGACY_TOKEN_TRACKING;
use crate::limits;
use crate::metrics::queues::QueueMetrics;
use crate::registry::{DeleteOptions, Target, now, stored_value};
use crate::scan::scan;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::unreadable::skip_unreadable;

const LABELS: [&str; 2] = ["metadata", "labels"];

/// Records the day of each token use that this server has seen.
pub async fn record(agent: Rc<Agent>) -> ApiResult<()> {
    let secrets = agent.resource("", "secrets")?;
    loop {
        let Use { namespace, secret, uid } = agent.settings.legacy_uses.next().await;
        let target = Target { served: &secrets, namespace: &namespace, name: &secret, subresource: "" };
        match label(&agent, target, &uid, (LAST_USED, now())).await {
            Err(error) if error.code != 404 => tracing::warn!(%error, namespace, secret, "cannot record a token's use"),
            _ => {}
        }
    }
}

/// Searches for unused tokens when it starts, and then every day.
pub async fn clean(agent: Rc<Agent>, measured: QueueMetrics) -> ApiResult<()> {
    let cleaner = Cleaner::new(agent)?;
    let queue = Queue::new(measured);
    queue.add(());
    let attempt = |()| async {
        cleaner.search(now()).await?;
        Ok(Requeue::After(limits::LEGACY_TOKEN_SEARCH_INTERVAL))
    };
    queue.work(1, attempt).await;
    Ok(())
}

/// Sets a label of a Secret to the day on which a time falls.
async fn label(agent: &Agent, target: Target<'_>, uid: &str, (label, time): (&str, Timestamp)) -> ApiResult<()> {
    let day = day_of(time);
    agent.edit(target, uid, |secret| secret.set_at(&[LABELS[0], LABELS[1], label], &*day)).await
}

/// The next action on a token that is unused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenAction {
    /// It is refused from now on.
    Refuse,
    /// Its Secret is removed, since it was refused for long enough.
    Remove,
}

/// Refuses and removes unused tokens.
pub(super) struct Cleaner {
    agent: Rc<Agent>,
    secrets: Arc<Served>,
    accounts: Arc<Served>,
    pods: Arc<Served>,
    config_maps: Arc<Served>,
}

impl Cleaner {
    pub(super) fn new(agent: Rc<Agent>) -> ApiResult<Self> {
        Ok(Self {
            secrets: agent.resource("", "secrets")?,
            accounts: agent.resource("", "serviceaccounts")?,
            pods: agent.resource("", "pods")?,
            config_maps: agent.resource("", "configmaps")?,
            agent,
        })
    }

    /// Takes the next action on each token that is unused at the time `now`.
    pub(super) async fn search(&self, now: Timestamp) -> ApiResult<()> {
        let (namespace, name) = LEGACY_TOKEN_TRACKING;
        let tracking = Target { served: &self.config_maps, namespace, name, subresource: "" };
        let Some(tracking) = self.agent.get(tracking)? else { return Ok(()) };
        if !is_tracked_long_enough(tracking.str_at(&["data", "since"]), now) {
            return Ok(());
        }
        let mut unused = Vec::new();
        self.each(&self.secrets, Selection { field: Some(token_type()), ..Selection::default() }, |secret| {
            unused.extend(next_action(&secret, now).map(|action| (secret, action)));
            true
        })?;
        for (secret, action) in unused {
            if self.is_generated(&secret)? && !self.is_mounted(&secret)? {
                self.take(action, &secret, now).await?;
            }
        }
        Ok(())
    }

    async fn take(&self, action: TokenAction, secret: &Value, now: Timestamp) -> ApiResult<()> {
        let of = |field| secret.str_at(&["metadata", field]);
        let target = Target { served: &self.secrets, namespace: of("namespace"), name: of("name"), subresource: "" };
        let taken = match action {
            TokenAction::Refuse => label(&self.agent, target, of("uid"), (INVALID_SINCE, now)).await,
            TokenAction::Remove => {
                let resource_version = Some(of("resourceVersion").to_owned());
                self.agent.delete(target, &DeleteOptions { resource_version, ..DeleteOptions::default() }).await
            }
        };
        match taken {
            // It was changed or removed meanwhile: the next search decides.
            Err(ApiError { code: 404 | 409, .. }) => Ok(()),
            taken => taken,
        }
    }

    /// Returns whether the account of a Secret lists the Secret. Kubernetes put the tokens that it generated without a
    /// request into that list.
    fn is_generated(&self, secret: &Value) -> ApiResult<bool> {
        let namespace = secret.str_at(&["metadata", "namespace"]);
        let account = Target { served: &self.accounts, namespace, name: secret.str_at(&ACCOUNT_NAME), subresource: "" };
        let Some(account) = self.agent.get(account)? else { return Ok(false) };
        let (stated, name) = (secret.str_at(&ACCOUNT_UID), secret.str_at(&["metadata", "name"]));
        let is_same = stated.is_empty() || stated == account.str_at(&["metadata", "uid"]);
        Ok(is_same && account.list_at(&["secrets"]).iter().any(|listed| listed.str_at(&["name"]) == name))
    }

    /// Returns whether a pod uses a Secret.
    fn is_mounted(&self, secret: &Value) -> ApiResult<bool> {
        let (namespace, name) = (secret.str_at(&["metadata", "namespace"]), secret.str_at(&["metadata", "name"]));
        let selection = Selection { scope: Scope::namespace(namespace), ..Selection::default() };
        let mut found = false;
        self.each(&self.pods, selection, |pod| {
            found = names_secret(&pod, name);
            !found
        })?;
        Ok(found)
    }

    /// Calls `visit` with each object of a selection until it returns false.
    fn each(&self, served: &Served, selection: Selection, mut visit: impl FnMut(Value) -> bool) -> ApiResult<()> {
        for objects in scan(&self.agent.registry.table(served).snapshot(), selection) {
            for object in objects.map_err(ApiError::internal)? {
                if let Some(value) = skip_unreadable(stored_value(&object))
                    && !visit(value)
                {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Returns whether uses have been recorded for at least as long as a token may be unused. Recording began at some time
/// on the day `since`, so the first whole day is the next one.
fn is_tracked_long_enough(since: &str, now: Timestamp) -> bool {
    start_of(since)
        .is_some_and(|start| start.seconds + SECONDS_PER_DAY + limits::LEGACY_TOKEN_UNUSED_SECONDS <= now.seconds)
}

/// Returns the next action on a token, judged by its Secret alone. Returns `None` if the token stays as it is.
fn next_action(secret: &Value, now: Timestamp) -> Option<TokenAction> {
    let long_ago = Timestamp { seconds: now.seconds - limits::LEGACY_TOKEN_UNUSED_SECONDS, ..now };
    let label = |name| secret.at(&[LABELS[0], LABELS[1], name]).as_str();
    let created = Timestamp::parse(secret.str_at(&["metadata", "creationTimestamp"])).ok()?;
    if created.seconds >= long_ago.seconds || !secret.at(&["metadata", "deletionTimestamp"]).is_null() {
        return None;
    }
    let is_before = |day: &str| start_of(day).map(|_| day < day_of(long_ago).as_str());
    // If the label does not state a day, the last use is unknown, and the token stays.
    if label(LAST_USED).is_some_and(|day| is_before(day) != Some(true)) {
        return None;
    }
    match label(INVALID_SINCE).and_then(is_before) {
        None => Some(TokenAction::Refuse),
        Some(true) => Some(TokenAction::Remove),
        Some(false) => None,
    }
}

/// Returns the time at which a day begins. `None` if the text is no day.
fn start_of(day: &str) -> Option<Timestamp> {
    Timestamp::parse(&format!("{day}T00:00:00Z")).ok().filter(|start| day_of(*start) == day)
}

#[cfg(test)]
mod tests {
    use flotilla_proto::value;

    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn action(created: &str, used: Option<&str>, invalid: Option<&str>) -> Option<TokenAction> {
        let mut secret = value!({"metadata": {"creationTimestamp": created}});
        for (name, day) in [(LAST_USED, used), (INVALID_SINCE, invalid)] {
            if let Some(day) = day {
                secret.set_at(&["metadata", "labels", name], day);
            }
        }
        next_action(&secret, at("2026-06-15T12:00:00Z"))
    }

    #[test]
    fn tokens_that_are_used_or_young_stay() {
        let old = "2020-01-01T00:00:00Z";
        assert_eq!(action("2025-06-15T12:00:00Z", None, None), None);
        assert_eq!(action("2025-06-15T11:59:59Z", None, None), Some(TokenAction::Refuse));
        assert_eq!(action(old, Some("2025-06-15"), None), None);
        assert_eq!(action(old, Some("2025-06-14"), None), Some(TokenAction::Refuse));
        assert_eq!(action(old, Some("yesterday"), None), None, "nobody knows when it was used");
    }

    #[test]
    fn tokens_are_removed_once_they_were_refused_for_long() {
        let old = "2020-01-01T00:00:00Z";
        assert_eq!(action(old, None, Some("2025-06-15")), None);
        assert_eq!(action(old, Some("2024-01-01"), Some("2025-06-14")), Some(TokenAction::Remove));
        assert_eq!(action(old, Some("2026-06-01"), Some("2025-06-14")), None, "it was used since");
        assert_eq!(action(old, None, Some("2025-6-14")), Some(TokenAction::Refuse), "this is no day");
    }

    #[test]
    fn uses_must_be_recorded_for_long_enough() {
        assert!(is_tracked_long_enough("2025-06-14", at("2026-06-15T00:00:00Z")));
        assert!(!is_tracked_long_enough("2025-06-14", at("2026-06-14T23:59:59Z")));
        assert!(!is_tracked_long_enough("", at("2026-06-14T23:59:59Z")));
    }
}
