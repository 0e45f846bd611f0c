//! The document of `/version`: the implemented version of Kubernetes, and the build of this program.

use flotilla_proto::json;
use flotilla_proto::value;
use flotilla_proto::value::Value;

use super::answer::{Answer, Request};
use crate::status::{ApiError, ApiResult};
use crate::version::{MAJOR, MINOR};

/// The oldest minor version of an API server that can run beside this one in a cluster.
const COMPATIBLE_MINOR: &str = "35";

/// Returns the document. `git_version` is the version that clients see. The members are also labels of a metric.
pub fn document(git_version: &str) -> Value {
    let platform = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    value!({
        "major": MAJOR,
        "minor": MINOR,
        "emulationMajor": MAJOR,
        "emulationMinor": MINOR,
        "minCompatibilityMajor": MAJOR,
        "minCompatibilityMinor": COMPATIBLE_MINOR,
        "gitVersion": (git_version),
        "gitCommit": (option_env!("FLOTILLA_COMMIT").unwrap_or("")),
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": (format!("{}/{platform}", std::env::consts::OS))
    })
}

/// Returns the answer for `/version` and paths below it. Returns `None` for other paths.
pub fn answer(request: &Request<'_>, git_version: &str) -> Option<ApiResult<Answer>> {
    match request.path {
        "/version" | "/version/" => {}
        path if path.starts_with("/version/") => return Some(Err(empty(404, "NotFound", NO_RESOURCE))),
        _ => return None,
    }
    if request.method != "GET" {
        return Some(Err(empty(405, "MethodNotAllowed", NO_METHOD)));
    }
    let accepts = request.accept.is_empty()
        || request
            .accept
            .split(',')
            .any(|clause| matches!(clause.split(';').next().unwrap_or("").trim(), "*/*" | "application/json"));
    if !accepts {
        let message = "406: Not Acceptable\n\nAvailable representations: application/json";
        return Some(Err(empty(406, "NotAcceptable", message)));
    }
    let mut text = Vec::with_capacity(512);
    json::write_pretty(&document(git_version), &mut text);
    Some(Ok(Answer::json(text)))
}

const NO_RESOURCE: &str = "the server could not find the requested resource";
const NO_METHOD: &str = "the server does not allow this method on the requested resource";

fn empty(code: u16, reason: &'static str, message: &str) -> ApiError {
    ApiError { details: Some(Box::default()), ..ApiError::new(code, reason, message) }
}
