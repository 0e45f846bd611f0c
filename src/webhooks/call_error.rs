//! The error of a call to a webhook, in the words of Kubernetes' clients.

use bytes::Bytes;
use flotilla_proto::json;
use flotilla_proto::value::Value;

use crate::field::quote;
use crate::limits;

/// The reason why a webhook did not answer with a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallError {
    /// The message.
    pub message: String,
    /// The code of the webhook's answer; 503 if it did not answer.
    pub code: u16,
    /// Whether its certificate has no subject alternative names.
    pub is_of_nameless: bool,
}

impl CallError {
    /// Returns the error that the webhook did not answer.
    pub fn unreachable(message: String) -> Self {
        Self { message, code: 503, is_of_nameless: false }
    }
}

/// Returns the error that an answer of kind Status describes.
fn stated(status: &Value, code: u16) -> CallError {
    let message = status.str_at(&["message"]);
    let message =
        if message.is_empty() { "an error on the server has prevented the request from succeeding" } else { message };
    let stated = status.int_at(&["code"]).and_then(|code| u16::try_from(code).ok());
    CallError { message: message.into(), code: stated.filter(|code| *code > 0).unwrap_or(code), is_of_nameless: false }
}

/// Returns the error for an answer that is not a review.
pub(super) fn refused(code: u16, media: &str, body: &Bytes) -> CallError {
    if let Ok(status) = json::parse(body)
        && status.str_at(&["kind"]) == "Status"
        && status.str_at(&["status"]) != "Success"
    {
        return stated(&status, code);
    }
    let beginning = String::from_utf8_lossy(&body[..body.len().min(limits::WEBHOOK_TEXT_BYTES)]);
    let text = if is_text(media) { beginning.trim() } else { "unknown" };
    let message = match code {
        400 => "the server rejected our request for an unknown reason".into(),
        401 => "the server has asked for the client to provide credentials".into(),
        403 | 415 => text.to_owned(),
        404 => "the server could not find the requested resource".into(),
        405 => "the server does not allow this method on the requested resource".into(),
        406 => "the server was unable to respond with a content type that the client supports".into(),
        409 => "the server reported a conflict".into(),
        422 => "the server rejected our request due to an error in our request".into(),
        429 => "the server has received too many requests and has asked us to try again later".into(),
        503 => "the server is currently unable to handle the request".into(),
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
                .into()
        }
        500.. => format!("an error on the server ({}) has prevented the request from succeeding", quote(text)),
        _ => format!("the server responded with the status code {code} but did not return more information"),
    };
    CallError { message, code, is_of_nameless: false }
}

/// Returns whether an answer of this media type is text. An answer without a media type counts as text.
fn is_text(media: &str) -> bool {
    media.is_empty() || media.trim_start().to_ascii_lowercase().starts_with("text/")
}
