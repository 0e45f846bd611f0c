//! Writes to the store, counts and times the writes, and makes the errors for clients.

use std::time::Instant;

use flotilla_cluster::{Draft, Expectation, Key, Mutation, Outcome, Tenure, Write, WriteError};

use super::Tables;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};

impl Tables {
    /// Stores a draft if the expectation holds.
    ///
    /// # Errors
    /// 413, 503, 504 or 507: the store refuses the write, or its outcome is unknown (504).
    pub async fn put(&self, served: &Served, key: Key, expectation: Expectation, draft: Draft) -> ApiResult<Outcome> {
        self.write(Write { table: served.table.clone(), key, expectation, mutation: Mutation::Put(draft) }).await
    }

    /// Makes a write if its expectation holds.
    ///
    /// # Errors
    /// As for [`Tables::put`].
    pub fn write(&self, write: Write) -> impl Future<Output = ApiResult<Outcome>> + Send {
        self.write_from(write, None)
    }

    /// Does the same as [`Tables::write`], but fails if the tenure is over.
    ///
    /// # Errors
    /// As for [`Tables::put`].
    pub async fn write_from(&self, write: Write, tenure: Option<Tenure>) -> ApiResult<Outcome> {
        let operation = match (&write.mutation, &write.expectation) {
            (Mutation::Put(_), Expectation::Absent) => "create",
            (Mutation::Put(_), _) => "update",
            _ => "delete",
        };
        let (table, began) = (write.table.clone(), Instant::now());
        let written = self.store.write_from(write, tenure).await;
        self.metrics.stored(operation, table, began.elapsed());
        written.map_err(|error| write_failed(&error))
    }
}

/// Returns the error that a client gets when the store refuses a write.
pub fn write_failed(error: &WriteError) -> ApiError {
    match error {
        WriteError::TooLarge { .. } => {
            ApiError::new(413, "RequestEntityTooLarge", format!("Request entity too large: {error}"))
        }
        WriteError::NoSpace => ApiError::new(507, "InsufficientStorage", error.to_string()),
        // Only 504 tells the client that the write may have been made.
        WriteError::Unknown => ApiError::timeout(error.to_string(), 1),
        _ => ApiError::unavailable(error.to_string(), 1),
    }
}
