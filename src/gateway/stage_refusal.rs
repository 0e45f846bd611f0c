//! Refusals of the stages of a request, and their answers.

use actix_web::HttpResponse;
use actix_web::http::header::{HeaderValue, X_CONTENT_TYPE_OPTIONS};

use super::exchange::Progress;
use super::head::Head;
use super::internal_error::internal_error;
use super::{Gateway, console};
use crate::answer;
use crate::request::Caller;
use crate::status::ApiError;

/// The reason why a stage does not pass a request on.
pub(super) enum StageRefusal {
    /// The reason that this `Status` states.
    Status(ApiError),
    /// The user may not do this, as this `Status` states.
    Forbidden(ApiError),
    /// Too many requests are in progress.
    NoSeat,
    /// The time of the request is over.
    TimedOut,
    /// An authorizer could not decide. Holds the error.
    Undecided(String),
}

impl From<ApiError> for StageRefusal {
    fn from(error: ApiError) -> Self {
        Self::Status(error)
    }
}

impl StageRefusal {
    /// Returns the answer to the refused request.
    pub(super) fn answer(
        self,
        gateway: &Gateway,
        head: &Head<'_>,
        caller: &Caller,
        progress: &mut Progress,
    ) -> HttpResponse {
        match self {
            Self::Status(error) => refuse(gateway, head, &error, &caller.notices.warnings),
            Self::Forbidden(error) => {
                let mut response = refuse(gateway, head, &error, &caller.notices.warnings);
                response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
                response
            }
            Self::NoSeat => answer::too_many_requests(progress.retry_after(gateway)),
            Self::TimedOut => progress.give_up(gateway),
            Self::Undecided(why) => answer::respond_text(500, &internal_error(head, &why)),
        }
    }
}

/// Returns the answer that states why a request is refused: a page for browsers that ask for the console, else a
/// `Status`.
pub(super) fn refuse(gateway: &Gateway, head: &Head<'_>, error: &ApiError, warnings: &[String]) -> HttpResponse {
    console::refusal(gateway, head, error).unwrap_or_else(|| answer::respond_error(error, head.for_errors(), warnings))
}
