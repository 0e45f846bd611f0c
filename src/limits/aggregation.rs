//! The limits of aggregated servers.

use std::time::Duration;

/// Group versions that aggregated servers answer for; requests for further ones are not passed on.
pub const AGGREGATED_VERSIONS: usize = 1_000;

/// How long an aggregated server may take to answer a health check or discovery, as in the reference.
pub const AGGREGATED_CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes of the discovery document of an aggregated server; resources of a larger one are not listed.
pub const AGGREGATED_DISCOVERY_BYTES: usize = 8 << 20;

/// Bytes that all aggregated servers together may add to the document of OpenAPI v2.
pub const AGGREGATED_OPENAPI_BYTES: usize = 32 << 20;

/// How often aggregated servers are asked for discovery.
pub const AGGREGATED_DISCOVERY_INTERVAL: Duration = Duration::from_secs(60);

/// Aggregated servers that are asked concurrently.
pub const AGGREGATED_DISCOVERY_ASKED: usize = 16;

/// How long an issued client certificate is used for aggregated servers before the next one is issued.
pub const AGGREGATED_IDENTITY_LIFETIME: Duration = Duration::from_secs(600);

/// How long until an aggregated server that did not answer is asked for discovery again.
pub const AGGREGATED_RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Requests that a check of an aggregated server sends at the same time. One good answer is enough.
pub const AGGREGATED_CHECK_REQUESTS: usize = 5;

/// How long after a check an aggregated server is checked again.
pub const AGGREGATED_CHECK_INTERVAL: Duration = Duration::from_secs(30);
