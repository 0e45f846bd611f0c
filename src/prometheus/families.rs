//! Names, meanings and buckets of everything that is measured: those of Kubernetes where it has the same, and
//! `flotilla_` for what only this server has.

use super::histogram::{Family, Unit};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

/// Time that requests take.
pub static REQUEST_DURATION: Family = Family {
    name: "apiserver_request_duration_seconds",
    help: "Time from the head of a request to the end of its answer, in seconds.",
    unit: Unit::Seconds,
    bounds: REQUEST_BOUNDS,
};

const REQUEST_BOUNDS: &[u64] = &[
    5 * MS,
    25 * MS,
    50 * MS,
    100 * MS,
    200 * MS,
    400 * MS,
    600 * MS,
    800 * MS,
    S,
    1250 * MS,
    1500 * MS,
    2 * S,
    3 * S,
    4 * S,
    5 * S,
    6 * S,
    8 * S,
    10 * S,
    15 * S,
    20 * S,
    30 * S,
    45 * S,
    60 * S,
];

/// The same for service level indicators: without watches, and without what the server is not to blame for.
pub static REQUEST_SLI_DURATION: Family = Family {
    name: "apiserver_request_sli_duration_seconds",
    help: "Time of requests other than watches that the server answers for, in seconds.",
    unit: Unit::Seconds,
    bounds: REQUEST_BOUNDS.split_at(2).1,
};

/// Bytes of answers.
pub static RESPONSE_SIZES: Family = Family {
    name: "apiserver_response_sizes",
    help: "Bytes of the bodies that reads are answered with.",
    unit: Unit::Bytes,
    bounds: &[1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000],
};

/// Bytes of watch events.
pub static WATCH_EVENTS_SIZES: Family = Family {
    name: "apiserver_watch_events_sizes",
    help: "Bytes of the events of watches.",
    unit: Unit::Bytes,
    bounds: &[1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072],
};

const ADMISSION_BOUNDS: &[u64] = &[5 * MS, 25 * MS, 100 * MS, 500 * MS, S, 2500 * MS];

/// Time of the steps of admission.
pub static ADMISSION_STEP_DURATION: Family = Family {
    name: "apiserver_admission_step_admission_duration_seconds",
    help: "Time of admission as a whole, by step, in seconds.",
    unit: Unit::Seconds,
    bounds: ADMISSION_BOUNDS,
};

/// Time of the plugins of admission.
pub static ADMISSION_CONTROLLER_DURATION: Family = Family {
    name: "apiserver_admission_controller_admission_duration_seconds",
    help: "Time of each plugin of admission that had to do with a request, in seconds.",
    unit: Unit::Seconds,
    bounds: ADMISSION_BOUNDS,
};

const POLICY_BOUNDS: &[u64] = &[500, MS, 10 * MS, 100 * MS, S];

/// Time of the expressions of validating policies.
pub static VALIDATING_POLICY_DURATION: Family = Family {
    name: "apiserver_validating_admission_policy_check_duration_seconds",
    help: "Time of a validation of an admission policy, in seconds.",
    unit: Unit::Seconds,
    bounds: POLICY_BOUNDS,
};

/// Time of the expressions of mutating policies.
pub static MUTATING_POLICY_DURATION: Family = Family {
    name: "apiserver_mutating_admission_policy_check_duration_seconds",
    help: "Time of a mutation of an admission policy, in seconds.",
    unit: Unit::Seconds,
    bounds: POLICY_BOUNDS,
};

const ACCESS_BOUNDS: &[u64] = &[
    MS,
    2 * MS,
    4 * MS,
    8 * MS,
    16 * MS,
    32 * MS,
    64 * MS,
    128 * MS,
    256 * MS,
    512 * MS,
    1_024 * MS,
    2_048 * MS,
    4_096 * MS,
    8_192 * MS,
    16_384 * MS,
];

/// Time of authentication.
pub static AUTHENTICATION_DURATION: Family = Family {
    name: "authentication_duration_seconds",
    help: "Time that it takes to find the user of a request, in seconds.",
    unit: Unit::Seconds,
    bounds: ACCESS_BOUNDS,
};

/// Time of authorization.
pub static AUTHORIZATION_DURATION: Family = Family {
    name: "authorization_duration_seconds",
    help: "Time that it takes to decide whether the user may, in seconds.",
    unit: Unit::Seconds,
    bounds: ACCESS_BOUNDS,
};

/// Time of writes of the store, under the name by which the storage of Kubernetes is known.
pub static STORE_DURATION: Family = Family {
    name: "etcd_request_duration_seconds",
    help: "Time until the store has made a write durable or refused it, in seconds.",
    unit: Unit::Seconds,
    bounds: REQUEST_BOUNDS,
};

const QUEUE_BOUNDS: &[u64] = &[10, 100, 1_000, 10_000, 100_000, MS, 10 * MS, 100 * MS, S, 10 * S];

/// Time in queues of controllers.
pub static QUEUE_DURATION: Family = Family {
    name: "workqueue_queue_duration_seconds",
    help: "Time that a key waits in the queue of a controller, in seconds.",
    unit: Unit::Seconds,
    bounds: QUEUE_BOUNDS,
};

/// Time that controllers work on a key.
pub static WORK_DURATION: Family = Family {
    name: "workqueue_work_duration_seconds",
    help: "Time that a controller works on a key, in seconds.",
    unit: Unit::Seconds,
    bounds: QUEUE_BOUNDS,
};

/// Time of webhooks that are asked about writes.
pub static WEBHOOK_DURATION: Family = Family {
    name: "apiserver_admission_webhook_admission_duration_seconds",
    help: "Time that a webhook takes which is asked about a write, in seconds.",
    unit: Unit::Seconds,
    bounds: &[5 * MS, 25 * MS, 100 * MS, 500 * MS, S, 2500 * MS, 10 * S, 25 * S],
};

const CONVERSION_BOUNDS: &[u64] = &[
    MS,
    2 * MS,
    4 * MS,
    8 * MS,
    16 * MS,
    32 * MS,
    64 * MS,
    128 * MS,
    256 * MS,
    512 * MS,
    1_024 * MS,
    2_048 * MS,
    4_096 * MS,
    8_192 * MS,
    16_384 * MS,
];

/// Time of conversions by webhooks.
pub static CONVERSION_DURATION: Family = Family {
    name: "apiserver_conversion_webhook_duration_seconds",
    help: "Time that a webhook takes to convert custom resources, in seconds.",
    unit: Unit::Seconds,
    bounds: &[
        5 * MS,
        10 * MS,
        20 * MS,
        50 * MS,
        100 * MS,
        200 * MS,
        500 * MS,
        S,
        2 * S,
        5 * S,
        10 * S,
        20 * S,
        30 * S,
        45 * S,
        60 * S,
    ],
};

/// The same by definition and versions.
pub static DEFINITION_CONVERSION_DURATION: Family = Family {
    name: "apiserver_crd_conversion_webhook_duration_seconds",
    help: "Time that a webhook takes to convert objects of a definition, in seconds.",
    unit: Unit::Seconds,
    bounds: CONVERSION_BOUNDS,
};

/// Validations of admission policies.
pub const VALIDATING_POLICY_CHECKS: &str = "apiserver_validating_admission_policy_check_total";
/// Mutations of admission policies.
pub const MUTATING_POLICY_CHECKS: &str = "apiserver_mutating_admission_policy_check_total";

/// Counters, with their meaning.
pub const COUNTERS: &[(&str, &str)] = &[
    (VALIDATING_POLICY_CHECKS, "Validations of admission policies that did something or failed."),
    (MUTATING_POLICY_CHECKS, "Mutations of admission policies."),
    (REQUESTS, "Requests answered."),
    (TERMINATIONS, "Requests that the server refused or gave up to protect itself."),
    (SERIES_REFUSED, "Requests that are not counted by their labels, since there are too many."),
    (WATCH_EVENTS, "Events sent to watches."),
    (AUTHENTICATIONS, "Requests by the outcome of authentication."),
    (USERS, "Requests by user, as far as the user is well known."),
    (AUTHORIZATIONS, "Requests by the outcome of authorization."),
    (QUEUE_ADDS, "Keys added to the queue of a controller."),
    (QUEUE_RETRIES, "Keys that a controller failed with, and tries again."),
    (STALLS, "Times that a thread did not come back for 200 ms, by what it is for."),
    (WEBHOOK_REQUESTS, "Requests to webhooks about writes."),
    (WEBHOOK_REJECTIONS, "Writes that a webhook refused, or that failed since it could not be asked."),
    (WEBHOOK_FAIL_OPEN, "Writes that went on although a webhook could not be asked."),
    (MATCH_CONDITION_ERRORS, "Match conditions of webhooks and policies that could not be evaluated."),
    (MATCH_CONDITION_EXCLUSIONS, "Writes that a webhook or a policy was not asked about, for its match conditions."),
    (CONVERSIONS, "Requests to webhooks that convert custom resources, by what came of them."),
    (WEBHOOK_NAMELESS, "Webhooks not asked because their certificates have no alternative names."),
    (AGGREGATED_NAMELESS, "Aggregated servers not asked because their certificates have no alternative names."),
    (AGGREGATED_LOST, "Times that those who answer for a group version went missing, by reason."),
    (STREAMS_TRANSLATED, "Streams of processes that were translated from WebSocket to SPDY, by how they ended."),
    (STREAMS_TUNNELLED, "Requests for ports with SPDY inside a WebSocket, by the code that answered them."),
    (STREAMS_ROUTED, "Requests for processes and ports, by who understands WebSockets: the node or this server."),
    (LOGS, "Requests for logs, by whether the node must prove who it is."),
    (LOGS_UNTRUSTED, "Requests for logs that failed since the node did not prove who it is."),
    (CLIENT_REQUESTS, "Requests of the embedded controllers; they take no way over the network."),
];

/// Gauges that follow what happens, with their meaning. Others are read when the metrics are asked for.
pub const GAUGES: &[(&str, &str)] = &[
    (LONG_RUNNING, "Watches that are open."),
    (QUEUE_DEPTH, "Keys that wait in the queue of a controller."),
    (OUTBOUND_CONNECTIONS, "Open connections with other servers that requests of this one share."),
    (OUTBOUND_REQUESTS, "Requests of this server to others that are under way or wait."),
];

/// Counters without labels that are shown before anything was counted.
pub const FROM_THE_START: &[&str] = &[WEBHOOK_NAMELESS, AGGREGATED_NAMELESS, LOGS_UNTRUSTED];

/// Certificates of webhooks without names.
pub const WEBHOOK_NAMELESS: &str = "apiserver_webhooks_x509_missing_san_total";
/// Certificates of aggregated servers without names.
pub const AGGREGATED_NAMELESS: &str = "apiserver_kube_aggregator_x509_missing_san_total";
/// Aggregated servers that went missing.
pub const AGGREGATED_LOST: &str = "aggregator_unavailable_apiservice_total";
/// Streams that were translated.
pub const STREAMS_TRANSLATED: &str = "apiserver_stream_translator_requests_total";
/// Streams inside WebSockets.
pub const STREAMS_TUNNELLED: &str = "apiserver_stream_tunnel_requests_total";
/// Requests for streams.
pub const STREAMS_ROUTED: &str = "apiserver_websocket_streaming_requests_total";
/// Requests for logs.
pub const LOGS: &str = "kube_apiserver_pod_logs_insecure_backend_total";
/// Nodes whose logs are not believed.
pub const LOGS_UNTRUSTED: &str = "kube_apiserver_pod_logs_backend_tls_failure_total";
/// Requests to webhooks about writes.
pub const WEBHOOK_REQUESTS: &str = "apiserver_admission_webhook_request_total";
/// Writes that webhooks refused.
pub const WEBHOOK_REJECTIONS: &str = "apiserver_admission_webhook_rejection_count";
/// Failures that were ignored.
pub const WEBHOOK_FAIL_OPEN: &str = "apiserver_admission_webhook_fail_open_count";
/// Match conditions that failed.
pub const MATCH_CONDITION_ERRORS: &str = "apiserver_admission_match_condition_evaluation_errors_total";
/// Match conditions that did not hold.
pub const MATCH_CONDITION_EXCLUSIONS: &str = "apiserver_admission_match_condition_exclusions_total";
/// Requests to webhooks that convert.
pub const CONVERSIONS: &str = "apiserver_conversion_webhook_request_total";
/// Connections with other servers.
pub const OUTBOUND_CONNECTIONS: &str = "flotilla_outbound_connections";
/// Requests to other servers.
pub const OUTBOUND_REQUESTS: &str = "flotilla_outbound_requests";

/// Requests answered.
pub const REQUESTS: &str = "apiserver_request_total";
/// Requests refused or given up.
pub const TERMINATIONS: &str = "apiserver_request_terminations_total";
/// What the bound on labels left out.
pub const SERIES_REFUSED: &str = "flotilla_request_series_refused_total";
/// Open watches.
pub const LONG_RUNNING: &str = "apiserver_longrunning_requests";
/// Events of watches.
pub const WATCH_EVENTS: &str = "apiserver_watch_events_total";
/// Outcomes of authentication.
pub const AUTHENTICATIONS: &str = "authentication_attempts";
/// Requests of well-known users.
pub const USERS: &str = "authenticated_user_requests";
/// Outcomes of authorization.
pub const AUTHORIZATIONS: &str = "authorization_attempts_total";
/// Keys that wait for a controller.
pub const QUEUE_DEPTH: &str = "workqueue_depth";
/// Keys that were added for a controller.
pub const QUEUE_ADDS: &str = "workqueue_adds_total";
/// Keys that a controller failed with.
pub const QUEUE_RETRIES: &str = "workqueue_retries_total";
/// Times that threads did not come back.
pub const STALLS: &str = "flotilla_thread_stalls_total";
/// Requests of controllers.
pub const CLIENT_REQUESTS: &str = "rest_client_requests_total";
