//! Rows that write.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hyper::Method;

use super::{Context, Numbers};
use crate::connection::{Answer, Call};
use crate::objects;
use crate::operation::Operation;

/// Returns the namespace for created pods, which is not that of the seeded ones.
pub fn posted(context: &Context) -> String {
    format!("{}-posted", context.namespace)
}

/// Returns a part of names that differs between runs, so that no run meets objects of another run.
pub fn run_id() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()
}

fn patch(path: String, media_type: &'static str, body: String) -> Call {
    Call { method: Method::PATCH, body: Some((media_type, Bytes::from(body))), ..Call::get(path) }
}

pub fn post_pod(context: &Context, number: usize) -> Box<dyn Operation> {
    let path = objects::pods(&posted(context));
    let run = run_id();
    let mut count = 0;
    Box::new(move || {
        count += 1;
        Call::with_json(Method::POST, path.clone(), objects::pod(&format!("p-{run}-{number}-{count}"), count))
    })
}

pub fn patch_merge(context: &Context, number: usize) -> Box<dyn Operation> {
    let (path, pods, run) = (objects::pods(&context.namespace), context.pods, run_id());
    let mut numbers = Numbers::of_client(number);
    let mut count = 0;
    Box::new(move || {
        count += 1;
        let body = format!(r#"{{"metadata":{{"annotations":{{"example.com/count":"{run}-{number}-{count}"}}}}}}"#);
        let path = format!("{path}/{}", objects::pod_name(numbers.below(pods)));
        patch(path, "application/merge-patch+json", body)
    })
}

pub fn patch_status(context: &Context, number: usize) -> Box<dyn Operation> {
    let (path, pods, run) = (objects::pods(&context.namespace), context.pods, run_id());
    let mut numbers = Numbers::of_client(number);
    let mut count = 0;
    Box::new(move || {
        count += 1;
        let body = format!(
            concat!(
                r#"{{"status":{{"phase":"Running","conditions":["#,
                r#"{{"type":"Ready","status":"True","message":"{run}-{number}-{count}"}}]}}}}"#
            ),
            run = run,
            number = number,
            count = count
        );
        let path = format!("{path}/{}/status", objects::pod_name(numbers.below(pods)));
        patch(path, "application/strategic-merge-patch+json", body)
    })
}

pub fn apply(context: &Context, number: usize) -> Box<dyn Operation> {
    let path =
        format!("{}/applied-{number}?fieldManager=loadtest&force=true", objects::config_maps(&context.namespace));
    let run = run_id();
    let mut count = 0;
    Box::new(move || {
        count += 1;
        let body = format!(
            concat!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"applied-{number}","#,
                r#""labels":{{"app":"loadtest"}}}},"data":{{"a":"1","b":"2","count":"{run}-{count}"}}}}"#
            ),
            number = number,
            run = run,
            count = count
        );
        patch(path.clone(), "application/apply-patch+yaml", body)
    })
}

/// Renews a lease as a leader does: creates it if it does not exist, then sends PUT with the revision of the last
/// answer.
struct Renewal {
    path: String,
    name: String,
    revision: Option<String>,
    count: u64,
}

impl Operation for Renewal {
    fn next(&mut self) -> Call {
        self.count += 1;
        let Some(revision) = &self.revision else {
            return Call::get(format!("{}/{}", self.path, self.name)).keeping_body();
        };
        let (name, transitions) = (&self.name, self.count);
        let revision = if revision.is_empty() { String::new() } else { format!(r#","resourceVersion":"{revision}""#) };
        let body = format!(
            concat!(
                r#"{{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{{"name":"{name}"{revision}}},"#,
                r#""spec":{{"holderIdentity":"loadtest","leaseDurationSeconds":15,"leaseTransitions":{transitions},"#,
                r#""renewTime":"2026-01-01T00:00:{second:02}.{micros:06}Z"}}}}"#
            ),
            name = name,
            revision = revision,
            transitions = transitions,
            second = transitions % 60,
            micros = transitions % 1_000_000
        );
        let (method, path) = match revision.is_empty() {
            true => (Method::POST, self.path.clone()),
            false => (Method::PUT, format!("{}/{}", self.path, self.name)),
        };
        Call::with_json(method, path, body).keeping_body()
    }

    fn seen(&mut self, answer: &Answer) {
        self.revision = match answer.status.as_u16() {
            404 => Some(String::new()),
            200 | 201 => revision(&answer.body),
            _ => None,
        };
    }
}

/// Returns the first resourceVersion in a JSON text.
fn revision(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    let (_, rest) = text.split_once(r#""resourceVersion":"#)?;
    Some(rest.trim_start().strip_prefix('"')?.split_once('"')?.0.to_owned())
}

pub fn lease(context: &Context, number: usize) -> Box<dyn Operation> {
    // The first request of a client gets a lease that may not exist. The name marks the 404 as expected.
    let name = format!("lease-{}-{number}", objects::MISSING);
    Box::new(Renewal { path: objects::leases(&context.namespace), name, revision: None, count: 0 })
}

pub fn churn(context: &Context, number: usize) -> Box<dyn Operation> {
    let path = objects::config_maps(&context.namespace);
    let name = format!("churn-{}-{number}", run_id());
    let mut is_there = false;
    Box::new(move || {
        is_there = !is_there;
        if is_there {
            let body = format!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"a":"1","b":"2"}}}}"#
            );
            Call::with_json(Method::POST, path.clone(), body)
        } else {
            Call { method: Method::DELETE, ..Call::get(format!("{path}/{name}")) }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_found() {
        assert_eq!(revision(br#"{"metadata":{"name":"a","resourceVersion":"42"}}"#).as_deref(), Some("42"));
        assert_eq!(revision(br#"{"metadata":{}}"#), None);
    }
}
