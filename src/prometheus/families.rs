//! Names, help texts and buckets of all metrics. Metrics that Kubernetes has too have its names; the others begin with
//! `flotilla_`.

use super::histogram::{Family, Unit};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

/// The durations of requests.
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

/// The durations of requests, for service level indicators: without watches, and without time for which the server is
/// not responsible.
pub static REQUEST_SLI_DURATION: Family = Family {
    name: "apiserver_request_sli_duration_seconds",
    help: "Time of requests other than watches for which the server is responsible, in seconds.",
    unit: Unit::Seconds,
    bounds: REQUEST_BOUNDS.split_at(2).1,
};

/// Sizes of answers.
pub static RESPONSE_SIZES: Family = Family {
    name: "apiserver_response_sizes",
    help: "Bytes of the bodies of answers to reads.",
    unit: Unit::Bytes,
    bounds: &[1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000],
};

/// Sizes of watch events.
pub static WATCH_EVENTS_SIZES: Family = Family {
    name: "apiserver_watch_events_sizes",
    help: "Bytes of the events of watches.",
    unit: Unit::Bytes,
    bounds: &[1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072],
};

const ADMISSION_BOUNDS: &[u64] = &[5 * MS, 25 * MS, 100 * MS, 500 * MS, S, 2500 * MS];

/// The durations of each step of admission.
pub static ADMISSION_STEP_DURATION: Family = Family {
    name: "apiserver_admission_step_admission_duration_seconds",
    help: "Time of admission as a whole, by step, in seconds.",
    unit: Unit::Seconds,
    bounds: ADMISSION_BOUNDS,
};

/// The durations of each admission plugin.
pub static ADMISSION_CONTROLLER_DURATION: Family = Family {
    name: "apiserver_admission_controller_admission_duration_seconds",
    help: "Time of each admission plugin that concerned the request, in seconds.",
    unit: Unit::Seconds,
    bounds: ADMISSION_BOUNDS,
};

const POLICY_BOUNDS: &[u64] = &[500, MS, 10 * MS, 100 * MS, S];

/// The durations of validations of policies.
pub static VALIDATING_POLICY_DURATION: Family = Family {
    name: "apiserver_validating_admission_policy_check_duration_seconds",
    help: "Time of a validation of an admission policy, in seconds.",
    unit: Unit::Seconds,
    bounds: POLICY_BOUNDS,
};

/// The durations of mutations of policies.
pub static MUTATING_POLICY_DURATION: Family = Family {
    name: "apiserver_mutating_admission_policy_check_duration_seconds",
    help: "Time of a mutation of an admission policy, in seconds.",
    unit: Unit::Seconds,
    bounds: POLICY_BOUNDS,
};

/// Bounds from a millisecond on, each twice the one before.
const DOUBLING_BOUNDS: &[u64] = &[
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

/// The durations of authentication.
pub static AUTHENTICATION_DURATION: Family = Family {
    name: "authentication_duration_seconds",
    help: "Time that it takes to find the user of a request, in seconds.",
    unit: Unit::Seconds,
    bounds: DOUBLING_BOUNDS,
};

/// The durations of authorization.
pub static AUTHORIZATION_DURATION: Family = Family {
    name: "authorization_duration_seconds",
    help: "Time that it takes to decide whether the user is allowed, in seconds.",
    unit: Unit::Seconds,
    bounds: DOUBLING_BOUNDS,
};

/// The durations of calls of authorization webhooks.
pub static ACCESS_WEBHOOK_DURATION: Family = Family {
    name: "apiserver_authorization_webhook_duration_seconds",
    help: "Time of a call of an authorization webhook, in seconds.",
    unit: Unit::Seconds,
    bounds: &[5 * MS, 10 * MS, 25 * MS, 50 * MS, 100 * MS, 250 * MS, 500 * MS, S, 2_500 * MS, 5 * S, 10 * S],
};

/// The durations of match conditions of authorization webhooks.
pub static ACCESS_CONDITIONS_DURATION: Family = Family {
    name: "apiserver_authorization_match_condition_evaluation_seconds",
    help: "Time of the match conditions of an authorization webhook about a request, in seconds.",
    unit: Unit::Seconds,
    bounds: &[MS, 5 * MS, 10 * MS, 25 * MS, 100 * MS, 200 * MS, 250 * MS],
};

/// The durations of writes of the store. The name is that of Kubernetes for its storage.
pub static STORE_DURATION: Family = Family {
    name: "etcd_request_duration_seconds",
    help: "Time until the store has made a write durable or refused it, in seconds.",
    unit: Unit::Seconds,
    bounds: REQUEST_BOUNDS,
};

const QUEUE_BOUNDS: &[u64] = &[10, 100, 1_000, 10_000, 100_000, MS, 10 * MS, 100 * MS, S, 10 * S];

/// The times for which keys wait in the queues of controllers.
pub static QUEUE_DURATION: Family = Family {
    name: "workqueue_queue_duration_seconds",
    help: "Time that a key waits in the queue of a controller, in seconds.",
    unit: Unit::Seconds,
    bounds: QUEUE_BOUNDS,
};

/// The times for which controllers work on a key.
pub static WORK_DURATION: Family = Family {
    name: "workqueue_work_duration_seconds",
    help: "Time that a controller works on a key, in seconds.",
    unit: Unit::Seconds,
    bounds: QUEUE_BOUNDS,
};

const FLOW_BOUNDS: &[u64] =
    &[0, 5 * MS, 20 * MS, 50 * MS, 100 * MS, 200 * MS, 500 * MS, S, 2 * S, 5 * S, 10 * S, 15 * S, 30 * S];

/// The times for which requests wait for seats of their priority levels.
pub static FLOW_WAIT_DURATION: Family = Family {
    name: "apiserver_flowcontrol_request_wait_duration_seconds",
    help: "Time that a request waits for a seat of its priority level, in seconds.",
    unit: Unit::Seconds,
    bounds: FLOW_BOUNDS,
};

/// The times for which requests have seats of their priority levels.
pub static FLOW_EXECUTION_DURATION: Family = Family {
    name: "apiserver_flowcontrol_request_execution_seconds",
    help: "Time that a request has a seat of its priority level, in seconds.",
    unit: Unit::Seconds,
    bounds: FLOW_BOUNDS,
};

/// The durations of calls of admission webhooks.
pub static WEBHOOK_DURATION: Family = Family {
    name: "apiserver_admission_webhook_admission_duration_seconds",
    help: "Time that an admission webhook takes to answer, in seconds.",
    unit: Unit::Seconds,
    bounds: &[5 * MS, 25 * MS, 100 * MS, 500 * MS, S, 2500 * MS, 10 * S, 25 * S],
};

/// The durations of calls of conversion webhooks.
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

/// The durations of calls of conversion webhooks, by definition and versions.
pub static DEFINITION_CONVERSION_DURATION: Family = Family {
    name: "apiserver_crd_conversion_webhook_duration_seconds",
    help: "Time that a webhook takes to convert objects of a definition, in seconds.",
    unit: Unit::Seconds,
    bounds: DOUBLING_BOUNDS,
};

/// Counts validations of admission policies.
pub const VALIDATING_POLICY_CHECKS: &str = "apiserver_validating_admission_policy_check_total";
/// Counts mutations of admission policies.
pub const MUTATING_POLICY_CHECKS: &str = "apiserver_mutating_admission_policy_check_total";

/// Counts events of auditing.
pub const AUDIT_EVENTS: &str = "apiserver_audit_event_total";
/// Counts requests that were refused because auditing failed.
pub const AUDIT_REJECTED: &str = "apiserver_audit_requests_rejected_total";
/// Counts audit events that were lost.
pub const AUDIT_ERRORS: &str = "apiserver_audit_error_total";
/// Counts requests by the level at which they are recorded.
pub const AUDIT_LEVELS: &str = "apiserver_audit_level_total";

/// Counts final decisions about requests, by the authorizer that made them.
pub const ACCESS_DECISIONS: &str = "apiserver_authorization_decisions_total";
/// Counts calls of authorization webhooks.
pub const ACCESS_WEBHOOK_EVALUATIONS: &str = "apiserver_authorization_webhook_evaluations_total";
/// Counts requests that other authorizers decided because an authorization webhook could not be asked.
pub const ACCESS_WEBHOOK_FAIL_OPEN: &str = "apiserver_authorization_webhook_evaluations_fail_open_total";
/// Counts requests for which match conditions of an authorization webhook could not be evaluated.
pub const ACCESS_CONDITION_ERRORS: &str = "apiserver_authorization_match_condition_evaluation_errors_total";
/// Counts requests about which an authorization webhook was not asked because of its match conditions.
pub const ACCESS_CONDITION_EXCLUSIONS: &str = "apiserver_authorization_match_condition_exclusions_total";
/// Counts tokens that are left to a webhook, by whether its answer was known already.
pub const TOKEN_CACHE_REQUESTS: &str = "authentication_token_cache_request_total";
/// Counts questions to that webhook.
pub const TOKEN_FETCHES: &str = "authentication_token_cache_fetch_total";
/// Questions to that webhook in progress, and requests that wait for them.
pub const TOKEN_FETCHES_ACTIVE: &str = "authentication_token_cache_active_fetch_count";

/// The counters with their help texts.
pub const COUNTERS: &[(&str, &str)] = &[
    (VALIDATING_POLICY_CHECKS, "Validations of admission policies that failed or had an effect."),
    (MUTATING_POLICY_CHECKS, "Mutations of admission policies."),
    (AUDIT_EVENTS, "Events of auditing."),
    (AUDIT_REJECTED, "Requests refused because their event could not be recorded."),
    (AUDIT_ERRORS, "Events of auditing that were lost, by their destination."),
    (AUDIT_LEVELS, "Requests by the level at which the audit policy records them."),
    (REQUESTS, "Requests answered."),
    (TERMINATIONS, "Requests that the server refused or aborted to protect itself."),
    (SERIES_REFUSED, "Requests missing from other metrics because there are too many combinations of labels."),
    (WATCH_EVENTS, "Events sent to watches."),
    (ACCESS_DECISIONS, "Final decisions about requests, by the authorizer that made them."),
    (ACCESS_WEBHOOK_EVALUATIONS, "Calls of authorization webhooks, by result."),
    (ACCESS_WEBHOOK_FAIL_OPEN, "Requests that others decided because an authorization webhook could not be asked."),
    (ACCESS_CONDITION_ERRORS, "Requests for which match conditions of an authorization webhook failed."),
    (ACCESS_CONDITION_EXCLUSIONS, "Requests for which match conditions excluded an authorization webhook."),
    (TOKEN_CACHE_REQUESTS, "Tokens left to a webhook, by whether its answer was known (hit) or not (miss)."),
    (TOKEN_FETCHES, "Questions about tokens to a webhook, by result."),
    (AUTHENTICATIONS, "Requests by the outcome of authentication."),
    (USERS, "Requests by user, for well-known users."),
    (AUTHORIZATIONS, "Requests by the outcome of authorization."),
    (QUEUE_ADDS, "Keys added to the queue of a controller."),
    (QUEUE_RETRIES, "Keys that a controller retries after a failure."),
    (STALLS, "Times that a task blocked its thread for 200 ms, by purpose of the thread."),
    (WEBHOOK_REQUESTS, "Requests to admission webhooks."),
    (WEBHOOK_REJECTIONS, "Writes that an admission webhook refused, or that failed because it could not be called."),
    (WEBHOOK_FAIL_OPEN, "Writes accepted although an admission webhook could not be called."),
    (MATCH_CONDITION_ERRORS, "Match conditions of webhooks and policies that could not be evaluated."),
    (MATCH_CONDITION_EXCLUSIONS, "Writes that the match conditions of a webhook or policy excluded."),
    (CONVERSIONS, "Requests to conversion webhooks, by result."),
    (WEBHOOK_NAMELESS, "Calls to webhooks that failed: the certificate has no subject alternative names."),
    (AGGREGATED_NAMELESS, "Calls to aggregated servers that failed: the certificate has no subject alternative names."),
    (AGGREGATED_LOST, "Times that an aggregated group version became unavailable, by reason."),
    (STREAMS_TRANSLATED, "Streams of exec and attach translated from WebSocket to SPDY, by result."),
    (STREAMS_TUNNELLED, "Requests for port forwarding with SPDY inside a WebSocket, by the code of the answer."),
    (STREAMS_ROUTED, "Requests for exec, attach and port forwarding, by what handles WebSockets (node or server)."),
    (LOGS, "Requests for logs, by whether the certificate of the node is verified."),
    (LOGS_UNTRUSTED, "Requests for logs that failed because the certificate of the node is not trusted."),
    (CLIENT_REQUESTS, "Requests of the embedded controllers. They do not pass through the network."),
];

/// The gauges that are updated on each event, with their help texts. Other gauges are computed at each scrape.
pub const GAUGES: &[(&str, &str)] = &[
    (LONG_RUNNING, "Watches that are open."),
    (QUEUE_DEPTH, "Keys that wait in the queue of a controller."),
    (OUTBOUND_CONNECTIONS, "Open connections to other servers, shared by requests of this server."),
    (TOKEN_FETCHES_ACTIVE, "Questions about tokens to a webhook in progress, and requests that wait for them."),
    (OUTBOUND_REQUESTS, "Requests of this server to others that are in progress or wait."),
];

/// Counters without labels, which are shown from the start with the value 0.
pub const FROM_THE_START: &[&str] = &[WEBHOOK_NAMELESS, AGGREGATED_NAMELESS, LOGS_UNTRUSTED];

/// Counts certificates of webhooks without subject alternative names.
pub const WEBHOOK_NAMELESS: &str = "apiserver_webhooks_x509_missing_san_total";
/// Counts certificates of aggregated servers without subject alternative names.
pub const AGGREGATED_NAMELESS: &str = "apiserver_kube_aggregator_x509_missing_san_total";
/// Counts the times at which aggregated servers became unavailable.
pub const AGGREGATED_LOST: &str = "aggregator_unavailable_apiservice_total";
/// Counts streams that were translated.
pub const STREAMS_TRANSLATED: &str = "apiserver_stream_translator_requests_total";
/// Counts streams inside WebSockets.
pub const STREAMS_TUNNELLED: &str = "apiserver_stream_tunnel_requests_total";
/// Counts requests for streams.
pub const STREAMS_ROUTED: &str = "apiserver_websocket_streaming_requests_total";
/// Counts requests for logs.
pub const LOGS: &str = "kube_apiserver_pod_logs_insecure_backend_total";
/// Counts requests for logs that failed because the certificate of the node is not trusted.
pub const LOGS_UNTRUSTED: &str = "kube_apiserver_pod_logs_backend_tls_failure_total";
/// Counts requests to admission webhooks.
pub const WEBHOOK_REQUESTS: &str = "apiserver_admission_webhook_request_total";
/// Counts writes that admission webhooks refused.
pub const WEBHOOK_REJECTIONS: &str = "apiserver_admission_webhook_rejection_count";
/// Counts failed calls of admission webhooks that were ignored.
pub const WEBHOOK_FAIL_OPEN: &str = "apiserver_admission_webhook_fail_open_count";
/// Counts match conditions that could not be evaluated.
pub const MATCH_CONDITION_ERRORS: &str = "apiserver_admission_match_condition_evaluation_errors_total";
/// Counts writes that match conditions excluded.
pub const MATCH_CONDITION_EXCLUSIONS: &str = "apiserver_admission_match_condition_exclusions_total";
/// Counts requests to conversion webhooks.
pub const CONVERSIONS: &str = "apiserver_conversion_webhook_request_total";
/// Connections to other servers.
pub const OUTBOUND_CONNECTIONS: &str = "flotilla_outbound_connections";
/// Requests to other servers.
pub const OUTBOUND_REQUESTS: &str = "flotilla_outbound_requests";

/// Counts answered requests.
pub const REQUESTS: &str = "apiserver_request_total";
/// Counts requests that the server refused or aborted.
pub const TERMINATIONS: &str = "apiserver_request_terminations_total";
/// Counts requests that other metrics leave out, because they have the maximum number of series.
pub const SERIES_REFUSED: &str = "flotilla_request_series_refused_total";
/// Open watches.
pub const LONG_RUNNING: &str = "apiserver_longrunning_requests";
/// Counts events of watches.
pub const WATCH_EVENTS: &str = "apiserver_watch_events_total";
/// Counts results of authentication.
pub const AUTHENTICATIONS: &str = "authentication_attempts";
/// Counts requests of well-known users.
pub const USERS: &str = "authenticated_user_requests";
/// Counts results of authorization.
pub const AUTHORIZATIONS: &str = "authorization_attempts_total";
/// Keys that wait for a controller.
pub const QUEUE_DEPTH: &str = "workqueue_depth";
/// Counts keys that were added to the queue of a controller.
pub const QUEUE_ADDS: &str = "workqueue_adds_total";
/// Counts keys that a controller retries.
pub const QUEUE_RETRIES: &str = "workqueue_retries_total";
/// Counts stalls of threads.
pub const STALLS: &str = "flotilla_thread_stalls_total";
/// Counts requests of the embedded controllers.
pub const CLIENT_REQUESTS: &str = "rest_client_requests_total";
