//! Sends one ConversionReview to a webhook and checks its answer.

use std::time::Instant;

use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::{Wanted, WebhookCaller, metadata};
use crate::custom::Definition;
use crate::field::quote;
use crate::limits;
use crate::prometheus::families;
use crate::webhooks::conversion::cache::Key;

/// The reason of a failed conversion: the reference's text, and the label that metrics use.
struct Failure(String, &'static str);

/// Converts all objects to a version by a webhook, in one review.
pub async fn ask(
    caller: &WebhookCaller,
    definition: &Definition,
    to: &str,
    wanted: Vec<Wanted>,
) -> Result<Vec<(Key, Value)>, String> {
    let began = Instant::now();
    let from = wanted.first().map(|first| first.object.str_at(&["apiVersion"]).to_owned()).unwrap_or_default();
    let asked = converted(caller, definition, to, wanted).await;
    let (result, failure) = match &asked {
        Ok(_) => ("success", ""),
        Err(Failure(_, failure)) => ("failure", *failure),
    };
    let meter = caller.metrics.meter();
    meter.counter(families::CONVERSIONS, &[("failure_type", failure), ("result", result)]).increment(1);
    let took = began.elapsed().as_nanos() as u64;
    let labels = [("failure_type", failure), ("result", result)];
    meter.histogram(&families::CONVERSION_DURATION, &labels).observe(took);
    let version = |api_version: &str| api_version.split_once('/').map_or(String::new(), |(_, version)| version.into());
    let (name, from, to) = (format!("{}.{}", definition.plural, definition.group), version(&from), version(to));
    let succeeded = if asked.is_ok() { "true" } else { "false" };
    let labels = [("crd_name", &*name), ("from_version", &*from), ("succeeded", succeeded), ("to_version", &*to)];
    meter.histogram(&families::DEFINITION_CONVERSION_DURATION, &labels).observe(took);
    asked.map_err(|Failure(why, _)| why)
}

async fn converted(
    caller: &WebhookCaller,
    definition: &Definition,
    to: &str,
    wanted: Vec<Wanted>,
) -> Result<Vec<(Key, Value)>, Failure> {
    let Some(conversion) = &definition.conversion else {
        return Err(Failure("no webhook converts this resource".into(), CALL));
    };
    let version = conversion.review.ok_or_else(|| Failure("no supported conversion review versions".into(), CALL))?;
    let kind = &definition.kind;
    let of = |object: &Value| format!("{}, Kind={kind}", object.str_at(&["apiVersion"]));
    let first = wanted.first().map(|first| of(&first.object)).unwrap_or_default();
    let failed = |why: &str| format!("conversion webhook for {first} failed: {why}");
    let uid = uuid::Uuid::new_v4().to_string();
    let objects: Vec<Value> = wanted.iter().map(|wanted| wanted.object.clone()).collect();
    let review = value!({
        "kind": "ConversionReview", "apiVersion": (format!("apiextensions.k8s.io/{version}")),
        "request": {"uid": (uid.clone()), "desiredAPIVersion": to, "objects": objects}
    });
    let answer = conversion.hook.ask(
        &caller.outbound,
        caller.peer.clone(),
        None, // as in the reference, which has no credentials for conversion webhooks
        &review,
        limits::CONVERSION_TIMEOUT,
        limits::CONVERSION_ANSWER_BYTES,
    );
    let mut answer = answer.await.map_err(|error| Failure(failed(&error.message), CALL))?;
    let objects = objects_of(&mut answer, version, &uid).map_err(|why| Failure(failed(&why), MALFORMED))?;
    if objects.len() != wanted.len() {
        let (given, expected) = (objects.len(), wanted.len());
        let why = format!("conversion webhook for {first} returned {given} objects, expected {expected}");
        return Err(Failure(why, PARTIAL));
    }
    let mut converted = Vec::with_capacity(wanted.len());
    for (wanted, mut object) in wanted.into_iter().zip(objects) {
        let returned =
            |why: String| Failure(format!("conversion webhook for {} returned {why}", of(&wanted.object)), INVALID);
        let stated = object.str_at(&["apiVersion"]);
        if stated != to {
            let why = format!("invalid object at index 0: invalid groupVersion (expected {to}, received {stated})");
            return Err(returned(why));
        }
        let stated = object.str_at(&["kind"]);
        if stated != &**kind {
            let why = format!("invalid object at index 0: invalid kind (expected {kind}, received {stated})");
            return Err(returned(why));
        }
        metadata::check(&wanted.object, &object).map_err(|why| returned(format!("invalid object: {why}")))?;
        metadata::restore(&wanted.object, &mut object).map_err(|why| returned(format!("invalid metadata: {why}")))?;
        definition.prune(&mut object);
        converted.push((wanted.key, object));
    }
    Ok(converted)
}

const CALL: &str = "conversion_webhook_call_failure";
const MALFORMED: &str = "conversion_webhook_malformed_response_failure";
const PARTIAL: &str = "conversion_webhook_partial_response_failure";
const INVALID: &str = "conversion_webhook_invalid_converted_object_failure";

/// Returns the converted objects of an answer.
fn objects_of(answer: &mut Value, version: &str, uid: &str) -> Result<Vec<Value>, String> {
    let shown = |api_version: &str, kind: &str| format!("{api_version}, Kind={kind}");
    let (api_version, kind) = (answer.str_at(&["apiVersion"]), answer.str_at(&["kind"]));
    let own = format!("apiextensions.k8s.io/{version}");
    if version == "v1" && (api_version != own || kind != "ConversionReview") {
        let expected = shown(&own, "ConversionReview");
        return Err(format!("expected webhook response of {expected}, got {}", shown(api_version, kind)));
    }
    if answer.map_at(&["response"]).is_none() {
        return Err("no response provided".into());
    }
    let stated = answer.str_at(&["response", "uid"]);
    if version == "v1" && stated != uid {
        return Err(format!("expected response.uid={}, got {}", quote(uid), quote(stated)));
    }
    let status = answer.str_at(&["response", "result", "status"]);
    if status != "Success" {
        let message = answer.str_at(&["response", "result", "message"]);
        return Err(match message {
            "" => format!("response.result.status was '{status}', not 'Success'"),
            message => message.to_owned(),
        });
    }
    match answer.remove_at(&["response", "convertedObjects"]) {
        Some(Value::Array(objects)) => Ok(objects.into_iter().collect()),
        _ => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_judged() {
        let judged = |response: Value, version: &str| {
            let api_version = format!("apiextensions.k8s.io/{version}");
            let mut answer = value!({"kind": "ConversionReview", "apiVersion": api_version, "response": response});
            objects_of(&mut answer, version, "u")
        };
        let good = value!({"uid": "u", "result": {"status": "Success"}, "convertedObjects": [{"a": 1}]});
        assert_eq!(judged(good, "v1"), Ok(vec![value!({"a": 1})]));
        let other = value!({"uid": "x", "result": {"status": "Success"}});
        assert_eq!(judged(other.clone(), "v1").unwrap_err(), "expected response.uid=\"u\", got \"x\"");
        assert_eq!(judged(other, "v1beta1"), Ok(vec![]));
        let failed = value!({"uid": "u", "result": {"status": "Failed", "message": "no"}});
        assert_eq!(judged(failed, "v1").unwrap_err(), "no");
        let silent = value!({"uid": "u", "result": {"status": "Failed"}});
        assert_eq!(judged(silent, "v1").unwrap_err(), "response.result.status was 'Failed', not 'Success'");
        assert_eq!(judged(Value::Null, "v1").unwrap_err(), "no response provided");
    }
}
