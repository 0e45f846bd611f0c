//! Every limit of the server, in one place, with its unit as the last word of its name.
//!
//! A limit of zero never means "unlimited". The limits hold for every request and every connection.

use std::time::Duration;

mod audit;
mod console;
mod moving;
mod outbound;

pub use audit::*;
pub use console::*;
pub use moving::*;
pub use outbound::*;

/// Bytes of a request body, as in the reference: 3 MiB. A larger body gets 413.
pub const BODY_BYTES: usize = 3_145_728;

/// Bytes from which on a thread other than the workers answers a request: those of its body and of the object that it
/// changes together, or those of an object or list that must be encoded for it.
pub const LARGE_REQUEST_BYTES: usize = 64 << 10;

/// Bytes of memory for the errors of one object, with their paths and values. The message and the causes of the answer
/// have about this size each. The reference has no such bound.
pub const ERROR_BYTES: usize = 1 << 20;

/// Operations of one JSON patch; more get 413.
pub const JSON_PATCH_OPERATIONS: usize = 10_000;

/// Bytes of JSON that all `copy` operations of a JSON patch may copy, so that a small patch cannot make a huge object.
pub const JSON_PATCH_COPIED_BYTES: usize = 3 << 20;

/// Values that the operations of a JSON patch may move within lists, or visit one by one. Bounds the time of a patch,
/// as each operation could otherwise move a list of a million items.
pub const JSON_PATCH_MOVED_VALUES: usize = 32 << 20;

/// How often a write begins again because the owners of an object's fields state another version, to which a webhook
/// must convert the object first. Two conversions are made for each version that owners state. A write that needs more
/// is refused.
pub const OWNERS_CONVERSIONS_MAX: usize = 64;

/// Attempts at an update or deletion while others change the same object.
pub const CHANGE_ATTEMPTS: usize = 100;

/// Deletions of one request for a collection that are under way at a time.
pub const COLLECTION_DELETIONS: usize = 64;

/// Attempts at an eviction while its pod changes.
pub const EVICTION_ATTEMPTS: usize = 20;

/// Attempts to give a service addresses while others take them first.
pub const ALLOCATION_ATTEMPTS: usize = 16;

/// Age at which other members regard a claim of node ports as void, because its member is gone. A write must begin
/// before half of this time has passed; the other half is longer than any write takes.
pub const PORT_CLAIM_LIFETIME: Duration = Duration::from_secs(60);

/// How long a write waits for the outcome of another write that has claimed the same port, before it is refused.
pub const PORT_CLAIM_WAIT: Duration = Duration::from_secs(3);

/// Attempts to generate a free name for an object.
pub const GENERATED_NAMES: usize = 8;

/// How long opening a connection to another server may take.
pub const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a component of the cluster may take to report its health, as in the reference.
pub const COMPONENT_TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes of a component's report that are read.
pub const COMPONENT_ANSWER_BYTES: usize = 10_240;

/// Bytes of the answer of an admission webhook.
pub const ADMISSION_ANSWER_BYTES: usize = 16 << 20;

/// Validating webhooks that are called concurrently for one write.
pub const WEBHOOKS_AT_ONCE: usize = 64;

/// How often a webhook that tells the client to try later is called again, within its timeout. As many times as clients
/// of Kubernetes retry.
pub const WEBHOOK_RETRIES: usize = 10;

/// Objects in one request for conversion to a webhook.
pub const CONVERSION_OBJECTS: usize = 500;

/// How long a conversion may take, as in the reference.
pub const CONVERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of the answer to a conversion.
pub const CONVERSION_ANSWER_BYTES: usize = 64 << 20;

/// Bytes of converted objects that are cached; the oldest make room.
pub const CONVERSIONS_KEPT_BYTES: usize = 64 << 20;

/// Bytes of stored objects that one list may have converted, so that the results are still cached when it is sent. A
/// larger list gets 413: clients must ask for it in pages.
pub const CONVERSIONS_LISTED_BYTES: usize = 16 << 20;

/// How long connecting to a server may take for the commands of administrators.
pub const ADMINISTRATION_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the answer to such a command may take. The server answers a change earlier, finished or not.
pub const ADMINISTRATION_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of encoded OpenAPI documents that are cached.
pub const OPENAPI_KEPT_BYTES: usize = 4 << 20;

/// Namespaces that are emptied concurrently.
pub const NAMESPACES_EMPTIED: usize = 8;

/// Tables of which the remaining objects in one namespace are followed, to notice when one is gone; other tables are
/// polled.
pub const NAMESPACE_FOLLOWED_TABLES: usize = 16;

/// Longest pause of a controller before it retries a key.
pub const CONTROLLER_BACKOFF: Duration = Duration::from_secs(60);

/// Connections that may wait to be accepted.
pub const BACKLOG_CONNECTIONS: i32 = 1_024;

/// Open connections of one HTTP worker; more wait in the backlog.
pub const WORKER_CONNECTIONS: usize = 25_000;

/// TLS handshakes in progress in one HTTP worker; more wait in the backlog.
pub const WORKER_HANDSHAKES: usize = 256;

/// How long a client's TLS handshake may take.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may take to send the head of a request.
pub const REQUEST_HEAD_TIMEOUT: Duration = Duration::from_secs(32);

/// Bytes of the head of a request, as in the reference: the request line and all headers. A larger head gets 431.
pub const HEAD_BYTES: usize = 1_048_576 + 4_096;

/// Header lines of a request.
pub const HEAD_LINES: usize = 32_768;

/// Header names of a request that is passed to another server. The map that holds them has room for 24,576.
pub const PASSED_HEADERS: usize = 16_384;

/// Bytes up to which the head of a request counts as small.
pub const HEAD_BYTES_COMMON: usize = 65_536;

/// Larger HTTP/1.1 heads that are read or answered concurrently; more get 503.
pub const LARGE_HEADS: usize = 64;

/// Bytes that an HTTP/1.1 connection reads at a time.
pub const HTTP1_READ_BYTES: usize = 8_192;

/// How long the server still reads from a connection that it will close: a client that is still sending would otherwise
/// miss its answer.
pub const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Idle time after which TCP keep-alive probes a client, as in the reference.
pub const KEEP_ALIVE_TIME: Duration = Duration::from_secs(180);

/// How long a stopping server waits for requests that were sent before clients learned of the stop. Later ones may be
/// refused, and clients know that.
pub const SETTLE_TIME: Duration = Duration::from_millis(100);

/// How long a connection without a request is kept.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(180);

/// Seconds that clients have to read the last answers of a stopping server.
pub const LINGER_SECONDS: u64 = 2;

/// Messages that wait for the gateway of a worker; further senders wait.
pub const GATEWAY_MESSAGES: usize = 1_024;

/// How long a request to change the cluster waits for the change. Then it gets 504; a repeated request goes on waiting.
pub const MEMBERS_CHANGE_WAIT: Duration = Duration::from_secs(15);

/// Concurrent backups; more get 429.
pub const BACKUPS: usize = 2;

/// Bytes of the answer to an administrator's command that are read.
pub const ADMINISTRATION_ANSWER_BYTES: u64 = 4 * 1_048_576;

/// Longest duration of a watch, whatever its client asks for.
pub const WATCH_TIME_MAX: Duration = Duration::from_secs(365 * 86_400);

/// How long a write of a role or a binding waits until the authorizer knows all earlier ones.
pub const GRANTS_WAIT: Duration = Duration::from_millis(500);

/// How long a watch of a table in several groups waits until all of them have reached its first revision.
pub const WATCH_BEGIN_WAIT: Duration = Duration::from_millis(500);

/// Bytes that a connection gathers before it sends them at once, without waiting for the next turn of its task.
pub const CONNECTION_WRITE_BYTES: usize = 65_536;

/// How long a bookmark waits until idle groups of the table have closed a newer revision, so that a client can use it
/// for the whole history window.
pub const BOOKMARK_FRESHENING: Duration = Duration::from_millis(200);

/// Time between bookmarks of a watch that asked for them.
pub const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// How long before its end a watch gets a last bookmark, from which the client can resume.
pub const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// How long a read waits for a revision that is not applied yet; then it gets 504.
pub const REVISION_WAIT: Duration = Duration::from_secs(3);

/// How long a request waits until a defined resource is served; then it gets 503.
pub const DEFINITION_WAIT: Duration = Duration::from_secs(3);

/// How long watches continue after the definition of their objects changed or was deleted.
pub const DEFINITION_GRACE: Duration = Duration::from_secs(1);

/// Concurrent watches of the server; more get 429.
pub const WATCHES: usize = 200_000;

/// Concurrent requests of users whom `--max-requests-inflight` and the like do not limit, without watches; more get
/// 429.
///
/// This also bounds the requests that one HTTP/2 connection can begin, since actix-web cannot tell clients how many
/// streams a connection may have. The crate h2 bounds how many streams may be reset before they are handled, and closes
/// the connection if there are more.
pub const EXEMPT_REQUESTS: usize = 10_000;

/// Concurrent requests that only read, unless configured; more get 429.
pub const READ_ONLY_REQUESTS: usize = 400;

/// Concurrent requests that may change something, unless configured; more get 429.
pub const MUTATING_REQUESTS: usize = 200;

/// Requests that wait for seats of their priority levels, in all queues of the server; more get 429.
pub const WAITING_REQUESTS: usize = 10_000;

/// Divisor of the time that a request may take. It waits for a seat of its priority level for at most the quotient.
pub const SEAT_WAIT_PART: u32 = 4;

/// FlowSchemas whose requests are measured, in the order in which they match; those of others are not.
pub const MEASURED_FLOWS: usize = 500;

/// Bodies of one user that are being received concurrently; more get 429.
pub const UPLOADS_OF_USER: usize = 100;

/// Bodies of all users that are being received concurrently.
pub const UPLOADS: usize = 1_000;

/// Combinations of labels in the metrics of requests; further ones are counted as refused.
pub const REQUEST_SERIES: usize = 20_000;

/// Changes that a watch reads from the change log at a time.
pub const WATCH_BATCH_EVENTS: usize = 256;

/// Watches that are woken together; those of further connections wait until these have sent their events.
pub const WATCHES_WOKEN_TOGETHER: usize = 64;

/// Bytes of events that a watch puts into one write to its socket.
pub const WATCH_WRITE_BYTES: usize = 65_536;

/// How long a task may hold its thread before other tasks run: one that selects the objects of a list, encodes them or
/// evaluates expressions. It first finishes what it has begun, such as one expression.
pub const TURN: Duration = Duration::from_millis(5);

/// Bytes of objects that a list encodes between two looks at the clock.
pub const TURN_BYTES: usize = 65_536;

/// Requirements of selectors that objects are compared with between two looks at the clock.
pub const SELECTION_CHECKS: usize = 100_000;

/// Objects that a list reads under one lock.
pub const LIST_CHUNK_OBJECTS: usize = 64;

/// Characters of all warnings of an answer, as in the reference. If there are more, each warning is shortened to
/// [`WARNING_CHARACTERS`], and those that still do not fit are dropped.
pub const WARNINGS_CHARACTERS: usize = 4_096;

/// Different warnings about pairs of items in a pod. Further ones would not fit into an answer.
pub const WARNINGS: usize = WARNINGS_CHARACTERS;

/// Characters to which a warning is shortened if all together have more than [`WARNINGS_CHARACTERS`].
pub const WARNING_CHARACTERS: usize = 256;

/// Certificates in a client's chain; longer chains do not authenticate.
pub const CLIENT_CHAIN_CERTIFICATES: usize = 8;

/// TLS sessions kept for resumption with TLS 1.2 session identifiers.
pub const TLS_SESSIONS: usize = 10_240;

/// Bytes of a bearer token; longer ones do not authenticate.
pub const TOKEN_BYTES: usize = 65_536;
/// Verified tokens that are cached.
pub const TOKEN_CACHE_ENTRIES: usize = 16_384;
/// Answers of a webhook about tokens that are kept.
pub const TOKEN_ANSWERS: usize = 16_384;
/// Time between two checks whether the files that configure authentication and authorization have changed.
pub const CONFIGURATION_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Answers of a webhook about what users may do that are kept.
pub const ACCESS_ANSWERS: usize = 8_192;
/// Questions that webhooks are asked about one request.
pub const QUESTIONS: usize = 256;
/// Different tokens about which a webhook is asked at once.
pub const TOKENS_ASKED_AT_ONCE: usize = 1_024;
/// Bytes of an answer of a webhook about a token or a request.
pub const REVIEW_ANSWER_BYTES: usize = 1 << 20;
/// About how many bytes such an answer may have to be kept. The webhook is asked again for larger ones.
pub const REVIEW_KEPT_BYTES: usize = 8_192;
/// How long an OpenID issuer has to answer one request.
pub const OPENID_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest answer of an OpenID issuer, in bytes.
pub const OPENID_ANSWER_BYTES: usize = 1 << 20;
/// Shortest time between two fetches of the keys of an OpenID issuer, so that tokens with false signatures cause few
/// fetches.
pub const OPENID_FETCH_INTERVAL: Duration = Duration::from_secs(1);
/// Uses of tokens in Secrets that wait until they are recorded there.
pub const LEGACY_TOKEN_USES: usize = 16_384;
/// Bytes of a file with certificates, keys or tokens.
pub const CREDENTIAL_FILE_BYTES: u64 = 4 * 1_048_576;
/// Bytes of a configuration file.
pub const CONFIG_FILE_BYTES: u64 = 1_048_576;
/// Bytes of a list that are encoded at a time; the next ones follow when the connection has taken these.
pub const LIST_CHUNK_BYTES: usize = 131_072;
/// Bytes of large objects that a list reads at a time. About as much stays in memory for a client that stops reading.
pub const LIST_READ_BYTES: usize = 524_288;
/// Bytes from which on a part of an answer is sent as it is stored, without a copy, so that a slow client holds no copy
/// of it.
pub const SHARED_BYTES_MIN: usize = 16_384;
/// Bytes of encoded answers of all streams that clients have not taken. Above this, each stream encodes
/// [`UNSENT_CHUNK_BYTES`] at a time.
pub const UNSENT_BYTES: usize = 64 << 20;
/// Bytes of encoded answers that clients have not taken, above which lists that must be encoded as a whole, such as
/// those in YAML, are refused: clients must try again.
pub const WHOLE_ANSWERS_BYTES: usize = 256 << 20;
/// Bytes that a stream encodes at a time while many wait for their clients.
pub const UNSENT_CHUNK_BYTES: usize = 4_096;
/// Bytes that the streams of one HTTP/2 connection may hand to it before it sends; they wait while its socket is full.
pub const CONNECTION_UNSENT_BYTES: usize = 131_072;
/// How long a client may read nothing of an answer whose time is over, before its connection is closed.
pub const READER_STALL: Duration = Duration::from_secs(30);
/// How long a thread may be unresponsive before this is logged.
pub const STALL: Duration = Duration::from_millis(200);
/// How often the watchdog checks threads.
pub const WATCHDOG_INTERVAL: Duration = Duration::from_millis(100);

/// Checks after which the watchdog also asks a thread that is idle.
pub const WATCHDOG_IDLE_LOOKS: u32 = 10;

/// Shortest time between two reports of unresponsive threads.
pub const STALL_LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes that a thread keeps for encoding between requests; larger buffers are freed.
pub const SCRATCH_BYTES: usize = 262_144;

/// Bytes above which answers are compressed for clients that accept gzip, as in the reference.
pub const GZIP_BYTES_MIN: usize = 131_072;
/// Members that a host name may resolve to when they form a cluster.
pub const INITIAL_MEMBERS: usize = 9;
/// How long a member waits before it tries again to create the objects that every cluster has.
pub const BEGIN_INTERVAL: Duration = Duration::from_secs(1);
/// Attempts to update those objects of every cluster that could not be written at first.
pub const RENEWALS: usize = 10;
/// How long after an address was claimed, or a service changed, the repair checks it. By then the write has ended, if
/// the store answered at all. As long as in the reference.
pub const ADDRESS_SETTLE_TIME: Duration = Duration::from_secs(60);
/// How often a replica that does not lead checks whether the objects that every cluster has exist.
pub const SEED_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Users whose mode of impersonation is cached.
pub const IMPERSONATORS: usize = 10_000;

/// Pods of a namespace that are checked when its pod security standard becomes stricter, as in the reference. If there
/// are more, a warning tells the client.
pub const NAMESPACE_PODS_CHECKED: usize = 3_000;

/// How long that check may take.
pub const NAMESPACE_PODS_CHECK: Duration = Duration::from_secs(1);

/// Unreadable objects that the error of a list names, as in the reference.
pub const UNREADABLE_LISTED: usize = 100;
/// Unreadable objects that are remembered.
pub const UNREADABLE_KNOWN: usize = 1_000;
/// Kinds by which unreadable objects are counted.
pub const UNREADABLE_KINDS: usize = 64;
/// Log lines about unreadable objects, per minute.
pub const UNREADABLE_LINES: usize = 20;

/// Bytes of stored objects that the server decodes before each pause when it checks them after its start, so that the
/// check takes a hundredth of a processor.
pub const EXAMINED_BYTES: usize = 1_048_576;
/// The pause of that check.
pub const EXAMINE_PAUSE: Duration = Duration::from_millis(50);

/// Connections that the stand-in for etcd accepts on each address.
pub const STAND_IN_CONNECTIONS: usize = 256;
/// Bytes that are buffered for the handler of a connection that switched protocols, until it reads them.
pub const TAKEN_OVER_BYTES: usize = 65_536;
/// How often a connection from which nothing is read is checked for a hang-up of its client.
pub const HANG_UP_INTERVAL: Duration = Duration::from_secs(5);
/// Bytes that are passed on at a time between a client and another server.
pub const STREAM_CHUNK_BYTES: usize = 32_768;
/// Bytes of a WebSocket message, all its frames together; a larger one ends the connection.
pub const WEBSOCKET_MESSAGE_BYTES: usize = 4 << 20;
/// Bytes of a SPDY frame from another server; a larger one ends the connection.
pub const SPDY_FRAME_BYTES: usize = 1 << 20;
/// SPDY frames, or WebSocket messages, that wait to be sent.
pub const STREAM_FRAMES: usize = 16;
/// How often a SPDY connection to another server is pinged, as in the reference.
pub const SPDY_PING_INTERVAL: Duration = Duration::from_secs(5);
/// The highest code by which streams are counted; higher codes of nodes count as this one.
pub const STATUS_CODE_MAX: u16 = 600;
/// How long a server may take to accept a SPDY stream, as in the reference.
pub const SPDY_STREAM_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of the error with which a remote process reports its end.
pub const PROCESS_ERROR_BYTES: usize = 65_536;
/// How long a stream may wait for its first data: as long as kubelets allow it to be idle.
pub const STREAM_BEGIN_TIMEOUT: Duration = Duration::from_secs(4 * 3_600);
/// Bytes of a kubelet's error that clients get, as in the reference.
pub const STREAM_ERROR_BYTES: usize = 50_000;
/// Bytes of an HTML page whose links are rewritten; a larger page is refused.
pub const HTML_BYTES: usize = 16 << 20;

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

/// Cost of all expressions of a plugin for one write, in units of CEL: ten times the cost that the expressions of one
/// policy may have with one parameter. The reference bounds only the latter.
pub const WRITE_COST: u64 = 100_000_000;
/// Parameters that one binding may select for a write; with more, the policy cannot be evaluated.
pub const POLICY_PARAMETERS: usize = 10_000;
/// Decisions of the authorizer about one write that are cached.
pub const DECISIONS_KEPT: usize = 1_000;
/// Bytes of the warnings and audit annotations that policies and webhooks may add to one write.
pub const NOTICES_BYTES: usize = 1 << 20;
/// Bytes of an answer of the webhook for images.
pub const IMAGE_ANSWER_BYTES: usize = 1 << 20;
/// Answers of the webhook for images that are kept.
pub const IMAGE_ANSWERS: usize = 1_024;
/// Bytes of the reason and of the audit annotations in an answer that is kept.
pub const IMAGE_REASON_BYTES: usize = 4_096;
/// Combinations of labels in the metrics of policies and webhooks; further ones are counted under the name `others`.
pub const ADMISSION_SERIES: usize = 10_000;

/// Slow requests that are kept for the overview.
pub const SLOW_REQUESTS: usize = 20;

/// How long they are kept.
pub const SLOW_REQUESTS_WINDOW: Duration = Duration::from_secs(600);

/// Characters that are kept of the path of a slow request.
pub const SLOW_REQUEST_PATH_CHARACTERS: usize = 256;

/// Characters that are kept of its header `User-Agent`.
pub const SLOW_REQUEST_USER_AGENT_CHARACTERS: usize = 96;

/// Warnings of the log that are kept for the overview.
pub const RECENT_WARNINGS: usize = 100;

/// Characters that are kept of each.
pub const RECENT_WARNING_CHARACTERS: usize = 600;

/// Types of requests in an overview: the most frequent.
pub const OVERVIEW_REQUESTS: usize = 100;

/// Resources in an overview: those that take the most memory.
pub const OVERVIEW_RESOURCES: usize = 64;

/// Watches that are behind in an overview: those furthest behind.
pub const OVERVIEW_WATCHES: usize = 10;

/// Bytes of an overview that commands read; they fail on more.
pub const OVERVIEW_BYTES: u64 = 16 << 20;

/// Bytes of an answer of a KMS plugin.
pub const KMS_ANSWER_BYTES: usize = 64 << 10;

/// Keys that a KMS plugin has encrypted and that are remembered.
pub const KMS_KEYS_MAX: usize = 1_024;

/// Time between attempts to connect to a KMS plugin.
pub const KMS_RETRY_INTERVAL: Duration = Duration::from_millis(100);
