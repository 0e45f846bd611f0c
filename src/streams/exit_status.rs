//! How a process at a node ended, as the error stream reports it.

use flotilla_proto::value::Value;
use flotilla_proto::{json, value};

use crate::field::quote;
use crate::status::ApiError;

/// The subprotocol that lets clients close standard input.
pub(super) const FIFTH: &str = "v5.channel.k8s.io";
/// The first subprotocol that reports how the process ended.
pub(super) const FOURTH: &str = "v4.channel.k8s.io";

/// Returns the status of a process from the text on the node's error stream.
pub(super) fn ended(protocol: &str, error_bytes: &[u8]) -> Value {
    let success = || value!({"metadata": {}, "status": "Success"});
    let failed = |why: String| ApiError::internal(why).to_value();
    if ![FIFTH, FOURTH].contains(&protocol) {
        let text = String::from_utf8_lossy(error_bytes);
        return if error_bytes.is_empty() {
            success()
        } else {
            failed(format!("error executing remote command: {text}"))
        };
    }
    if error_bytes.is_empty() {
        return success();
    }
    let Ok(status) = json::parse(error_bytes) else {
        let text = quote(&String::from_utf8_lossy(error_bytes));
        return failed(format!("error stream protocol error: invalid character in {text}"));
    };
    match status.str_at(&["status"]) {
        "Success" => success(),
        "Failure" if status.str_at(&["reason"]) == "NonZeroExitCode" => exited(&status),
        "Failure" => failed(status.str_at(&["message"]).to_owned()),
        _ => failed("error stream protocol error: unknown error".into()),
    }
}

/// Returns the status of a process that exited with a code.
fn exited(status: &Value) -> Value {
    let causes = status.list_at(&["details", "causes"]);
    let code = causes.iter().find(|cause| cause.str_at(&["reason"]) == "ExitCode").map(|it| it.str_at(&["message"]));
    let Some(code) = code else {
        return ApiError::internal("error stream protocol error: no ExitCode cause given").to_value();
    };
    if code.parse::<u8>().is_err() {
        let why = format!("error stream protocol error: invalid exit code value {}", quote(code));
        return ApiError::internal(why).to_value();
    }
    let message = format!("command terminated with non-zero exit code: command terminated with exit code {code}");
    let cause = value!({"reason": "ExitCode", "message": code});
    let details = value!({"causes": (vec![cause])});
    value!({
        "metadata": {}, "status": "Failure", "message": message, "reason": "NonZeroExitCode", "details": details
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_stream_reports_how_a_process_ended() {
        let text = |value: Value| String::from_utf8(json::to_vec(&value)).unwrap();
        assert_eq!(text(ended(FIFTH, br#"{"status":"Success"}"#)), r#"{"metadata":{},"status":"Success"}"#);
        let three = br#"{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[
            {"reason":"ExitCode","message":"3"}]}}"#;
        let status = ended(FIFTH, three);
        assert_eq!(status.list_at(&["details", "causes"])[0].str_at(&["message"]), "3");
        let words = "command terminated with non-zero exit code: command terminated with exit code 3";
        assert_eq!(status.str_at(&["message"]), words);
        let bad = ended(FIFTH, &three[..].iter().map(|b| if *b == b'3' { b'x' } else { *b }).collect::<Vec<_>>());
        assert!(bad.str_at(&["message"]).contains("invalid exit code value \"x\""));
        assert_eq!(ended("v2.channel.k8s.io", b"").str_at(&["status"]), "Success");
    }
}
