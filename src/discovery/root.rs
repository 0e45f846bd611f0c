//! The document of `/`: the list of served paths.

use flotilla_proto::json;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::answer::{Answer, Request};
use super::{Documents, health};

/// Paths besides those of discovery and health.
const OTHER: [&str; 8] = [
    "/.well-known/openid-configuration",
    "/metrics",
    "/metrics/slis",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/openid/v1/jwks",
    "/version",
];

/// Returns the answer to any method on `/` and `/index.html`. Returns `None` for other paths.
pub fn answer(request: &Request<'_>, documents: &Documents) -> Option<Answer> {
    if !matches!(request.path, "/" | "/index.html") {
        return None;
    }
    let mut paths: Vec<String> = documents.paths().to_vec();
    paths.extend(OTHER.map(String::from));
    paths.extend(health::paths());
    paths.sort_unstable();
    let paths: Vec<Value> = paths.into_iter().map(Value::from).collect();
    let mut text = Vec::with_capacity(8192);
    json::write_pretty(&value!({"paths": paths}), &mut text);
    Some(Answer::json(text))
}
