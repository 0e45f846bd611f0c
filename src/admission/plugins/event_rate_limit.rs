//! EventRateLimit: refuses events that exceed the configured rates.

use std::time::Instant;

use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::status::{ApiError, ApiResult};

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("EventRateLimit", Presence::Off).validating(decides_by, validate);

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    // Events of `events.k8s.io` are another kind.
    (part.served.group().is_empty() && part.is_written(operation, ("", "events"))).then_some(DecidesBy::Object)
}

fn validate(write: &BuiltInAttributes<'_>, event: &Value) -> ApiResult<()> {
    if write.dry_run {
        return Ok(());
    }
    let rates = &write.admission.configuration.event_rates;
    let accepted = rates.accept(event, write.target.namespace, &write.caller.identity.user().name, Instant::now());
    accepted.map_err(|why| ApiError::new(429, "TooManyRequests", format!("Too many requests: {why}")))
}
