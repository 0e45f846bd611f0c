//! Errors for clients when a node answers with an error.

use crate::field::quote;
use crate::status::{ApiError, Details};

/// Returns the error for a node's answer about a subresource, in the words that the reference uses for any answer.
pub fn of_answer(code: u16, subresource: &str, name: &str, text: &str) -> ApiError {
    let (reason, message): (&'static str, String) = match code {
        500 => return ApiError::internal(text),
        400 => return ApiError::bad_request(text),
        401 => ("Unauthorized", "the server has asked for the client to provide credentials".into()),
        403 => ("Forbidden", text.into()),
        404 => ("NotFound", "the server could not find the requested resource".into()),
        405 => ("MethodNotAllowed", "the server does not allow this method on the requested resource".into()),
        406 => ("NotAcceptable", text.into()),
        409 => ("Conflict", "the server reported a conflict".into()),
        415 => ("UnsupportedMediaType", text.into()),
        422 => ("Invalid", "the server rejected our request due to an error in our request".into()),
        429 => {
            ("TooManyRequests", "the server has received too many requests and has asked us to try again later".into())
        }
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request".into()),
        504 => (
            "Timeout",
            "the server was unable to return a response in the time allotted, but may still be processing the request"
                .into(),
        ),
        501.. => (
            "InternalError",
            format!("an error on the server ({}) has prevented the request from succeeding", quote(text)),
        ),
        _ => ("", format!("the server responded with the status code {code} but did not return more information")),
    };
    let details = Details { name: name.into(), kind: subresource.into(), ..Details::default() };
    let message = format!("{message} ( {subresource} {name})");
    ApiError { details: Some(Box::new(details)), ..ApiError::new(code, reason, message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_reference() {
        let message = |code| of_answer(code, "pods/log", "p", "no").message;
        assert_eq!(message(500), "Internal error occurred: no");
        assert_eq!(message(404), "the server could not find the requested resource ( pods/log p)");
        let of_502 = "an error on the server (\"no\") has prevented the request from succeeding ( pods/log p)";
        assert_eq!(message(502), of_502);
    }
}
