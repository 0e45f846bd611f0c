//! Has webhooks convert objects in advance, for code that cannot wait for an answer.

mod metadata;
mod review;

use std::collections::HashSet;
use std::sync::Arc;

use flotilla_proto::value::Value;
use tokio::sync::watch;

use super::Tables;
use crate::custom::Definition;
use crate::limits;
use crate::metrics::Metrics;
use crate::outbound::{Outbound, Peer};
use crate::status::{ApiError, ApiResult};
use crate::tasks;
use crate::webhooks::conversion::cache::{self, Key, Outcome, Turn};

/// Calls conversion webhooks. Owns its parts, because the task that makes the calls may outlive the request.
pub struct WebhookCaller {
    pub(super) outbound: Outbound,
    pub(super) metrics: Arc<Metrics>,
    pub(super) peer: Result<Peer, String>,
}

/// An object to convert, and the key under which the result is kept.
pub struct Wanted {
    pub(super) key: Key,
    pub(super) object: Value,
}

impl Tables {
    /// Converts objects to a version by the webhook of a definition, and caches the results until they are shown. Skips
    /// objects whose result is known, and waits for those that another task has already asked for.
    ///
    /// # Errors
    /// The reference's error about a webhook that fails to convert them.
    pub async fn convert_ahead(&self, definition: &Arc<Definition>, to: &str, objects: Vec<Value>) -> ApiResult<()> {
        let (sender, outcome) = watch::channel(None);
        let (mut own, mut others): (Vec<Wanted>, Vec<Outcome>) = (Vec::new(), Vec::new());
        let mut seen = HashSet::new();
        for object in objects {
            let key = cache::key(definition.serial, to, &object);
            if !seen.insert(key) {
                continue;
            }
            match cache::turn(key, &outcome) {
                Turn::Known => {}
                Turn::Own => own.push(Wanted { key, object }),
                Turn::Others(outcome) => others.push(outcome),
            }
        }
        if !own.is_empty() {
            let peer = definition
                .conversion
                .as_ref()
                .map_or_else(|| Err(String::new()), |webhook| webhook.hook.peer(self.resolver()));
            let caller = WebhookCaller { outbound: self.outbound.clone(), metrics: Arc::clone(&self.metrics), peer };
            let (definition, to) = (Arc::clone(definition), to.to_owned());
            // Other requests may wait for this task, so it continues even if the request that started it is cancelled.
            tasks::detached("conversion", async move {
                let keys: Vec<Key> = own.iter().map(|wanted| wanted.key).collect();
                let converted = ask_in_parts(&caller, &definition, &to, own).await;
                cache::answered(&keys);
                sender.send_replace(Some(converted));
            });
            others.push(outcome);
        }
        for mut outcome in others {
            let converted = outcome.wait_for(Option::is_some).await;
            let converted = converted.map_or_else(|_| Some(Err(ended())), |converted| converted.clone());
            converted.unwrap_or_else(|| Err(ended()))?;
        }
        Ok(())
    }
}

fn ended() -> ApiError {
    ApiError::unavailable("the conversion of objects was broken off", 1)
}

async fn ask_in_parts(caller: &WebhookCaller, definition: &Definition, to: &str, wanted: Vec<Wanted>) -> ApiResult<()> {
    let mut wanted = wanted.into_iter().peekable();
    while wanted.peek().is_some() {
        let part: Vec<Wanted> = wanted.by_ref().take(limits::CONVERSION_OBJECTS).collect();
        let converted = review::ask(caller, definition, to, part).await.map_err(ApiError::unknown)?;
        cache::keep(converted);
    }
    Ok(())
}
