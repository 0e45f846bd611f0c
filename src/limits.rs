//! Every limit of the server, in one place, with its unit as the last word of its name.
//!
//! A limit of zero never means "none": what is here holds for every request and every connection.

use std::time::Duration;

/// Bytes of a request body, as the reference has them: 3 MiB. More is answered with 413.
pub const BODY_BYTES: usize = 3_145_728;

/// Bytes below the data directory from which on a store is opened in large pages of memory.
pub const LARGE_PAGES_FROM_BYTES: u64 = 256 << 20;

/// Bytes of memory that the errors of one object take, with their paths and the values that they show: about as much
/// goes into the message and into the causes of the answer. The reference tells all of them.
pub const ERROR_BYTES: usize = 1 << 20;

/// Operations of one JSON patch; more is answered with 413.
pub const JSON_PATCH_OPERATIONS: usize = 10_000;

/// Bytes of JSON that the `copy` operations of a JSON patch may copy together, so that a patch cannot blow up an
/// object.
pub const JSON_PATCH_COPIED_BYTES: usize = 3 << 20;

/// Values that the operations of a JSON patch may move within lists, or look at one by one, so that the time that a
/// patch takes follows from its size: each of its operations could move a list of a million items.
pub const JSON_PATCH_MOVED_VALUES: usize = 32 << 20;

/// Attempts at an update or deletion while others change the same object.
pub const CHANGE_ATTEMPTS: usize = 100;

/// Deletions of one request for a collection that are under way at a time.
pub const COLLECTION_DELETIONS: usize = 64;

/// Attempts at an eviction while its pod changes.
pub const EVICTION_ATTEMPTS: usize = 20;

/// Attempts to give a service addresses while others take them first.
pub const ALLOCATION_ATTEMPTS: usize = 16;

/// How long others see the claim of node ports until it is void, because the member that made it is gone. Whose claim
/// is half as old does not rely on it; the other half is more than a write may take that has begun by then.
pub const PORT_CLAIM_LIFETIME: Duration = Duration::from_secs(60);

/// How long a write waits to see what becomes of another that has claimed the port which it asks for; then it is
/// refused.
pub const PORT_CLAIM_WAIT: Duration = Duration::from_secs(3);

/// Names that are generated for an object before the server gives up.
pub const GENERATED_NAMES: usize = 8;

/// How long a connection to another server may take to come about.
pub const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a component of the cluster may take to say how it is, as in the reference.
pub const COMPONENT_TIMEOUT: Duration = Duration::from_secs(20);

/// Most bytes that are read of what it says.
pub const COMPONENT_ANSWER_BYTES: usize = 10_240;

/// How long another server may say nothing until its machine is asked whether it is still there, as the reference has
/// it.
pub const OUTBOUND_KEEP_ALIVE_TIME: Duration = Duration::from_secs(30);

/// Addresses of a host that are tried.
pub const OUTBOUND_ADDRESSES: usize = 16;

/// How long the handshake of TLS with another server may take, as Go has it.
pub const OUTBOUND_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Other servers with which connections are kept; those that were not asked for longest make room.
pub const OUTBOUND_PEERS: usize = 512;

/// Requests that are made of one other server at a time; over HTTP/1.1 each has a connection.
pub const OUTBOUND_REQUESTS: usize = 256;

/// Requests that wait for those; more fail at once.
pub const OUTBOUND_WAITING: usize = 4_096;

/// Connections without a request that are kept with one other server, as Go's clients of Kubernetes have it.
pub const OUTBOUND_IDLE_CONNECTIONS: usize = 25;

/// How long a connection without a request is kept.
pub const OUTBOUND_IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// How often another server is asked whether it is still there, over HTTP/2.
pub const OUTBOUND_PING_INTERVAL: Duration = Duration::from_secs(30);

/// How long it may take to say so.
pub const OUTBOUND_PING_TIMEOUT: Duration = Duration::from_secs(15);

/// Bytes of the answer of a webhook that is asked about a write.
pub const ADMISSION_ANSWER_BYTES: usize = 16 << 20;

/// Validating webhooks that are asked about one write at the same time.
pub const WEBHOOKS_AT_ONCE: usize = 64;

/// How often a webhook is asked again that asks for patience, within its time; as clients of Kubernetes do it.
pub const WEBHOOK_RETRIES: usize = 10;

/// Objects that a webhook is asked to convert at a time.
pub const CONVERSION_OBJECTS: usize = 500;

/// How long it may take, as the reference has it.
pub const CONVERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of its answer.
pub const CONVERSION_ANSWER_BYTES: usize = 64 << 20;

/// Bytes of converted objects that are kept for those who ask for the same; the oldest make room.
pub const CONVERSIONS_KEPT_BYTES: usize = 64 << 20;

/// Bytes of stored objects that one list may have converted, so that they are still kept when it is sent. More is
/// answered with 413: such a list is to be asked for in pages.
pub const CONVERSIONS_LISTED_BYTES: usize = 16 << 20;

/// Bytes of the head of an answer.
pub const OUTBOUND_HEAD_BYTES: usize = 262_144;

/// Headers of an answer.
pub const OUTBOUND_HEADERS: usize = 256;

/// How long a server may take to be connected with by the commands of administrators.
pub const ADMINISTRATION_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long its answer may take; the server itself answers a change sooner, finished or not.
pub const ADMINISTRATION_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of encoded OpenAPI documents that are kept for the next request.
pub const OPENAPI_KEPT_BYTES: usize = 4 << 20;

/// Namespaces that are emptied at a time.
pub const NAMESPACES_EMPTIED: usize = 8;

/// Tables of which the remaining content of one namespace is followed; elsewhere it is looked at now and then.
pub const NAMESPACE_FOLLOWED_TABLES: usize = 16;

/// Longest pause of a controller before it tries a key again that it failed with.
pub const CONTROLLER_BACKOFF: Duration = Duration::from_secs(60);

/// Connections that may wait to be accepted.
pub const BACKLOG_CONNECTIONS: i32 = 1_024;

/// Open connections of one HTTP worker; more wait in the backlog.
pub const WORKER_CONNECTIONS: usize = 25_000;

/// TLS handshakes in progress of one HTTP worker; more wait in the backlog.
pub const WORKER_HANDSHAKES: usize = 256;

/// Time that a client has for its TLS handshake.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Time that a client has to send the head of a request.
pub const REQUEST_HEAD_TIMEOUT: Duration = Duration::from_secs(32);

/// Bytes of the head of a request, as the reference has them: the request line and all headers. More is answered with
/// 431.
pub const HEAD_BYTES: usize = 1_048_576 + 4_096;

/// Lines of headers of a request.
pub const HEAD_LINES: usize = 32_768;

/// Names of headers of a request that is passed on to another server. The map that holds them takes 24,576.
pub const PASSED_HEADERS: usize = 16_384;

/// Bytes of a head up to which it is a common one.
pub const HEAD_BYTES_COMMON: usize = 65_536;

/// Heads of HTTP/1.1 that are larger and are read or answered at a time; more are answered with 503.
pub const LARGE_HEADS: usize = 64;

/// Bytes that a connection of HTTP/1.1 reads at a time.
pub const HTTP1_READ_BYTES: usize = 8_192;

/// Time that a connection which is to be closed is still read from: a client that sends on would miss its answer
/// otherwise.
pub const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a client may say nothing until its machine is asked whether it is still there, as the reference has it.
pub const KEEP_ALIVE_TIME: Duration = Duration::from_secs(180);

/// Time that requests may be on their way when a stopping server has asked for no more. Those that come later may be
/// refused, as their clients are told.
pub const SETTLE_TIME: Duration = Duration::from_millis(100);

/// Time that a connection without a request is kept.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(180);

/// Seconds that connections of a stopping server have to take what was answered.
pub const LINGER_SECONDS: u64 = 2;

/// Questions to the gateway of a worker that wait at a time; who asks more waits to ask.
pub const GATEWAY_MESSAGES: usize = 1_024;

/// Longest time that a request other than a watch may take, as the reference has it; then it is answered with 504.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Time that a request to change the cluster waits for it; then it is answered with 504, and can be repeated to wait
/// on.
pub const MEMBERS_CHANGE_WAIT: Duration = Duration::from_secs(15);

/// Backups that are taken at a time; more are answered with 429.
pub const BACKUPS: usize = 2;

/// Bytes of an answer to a command about the cluster that are read.
pub const ADMINISTRATION_ANSWER_BYTES: u64 = 4 * 1_048_576;

/// Shortest time after which a watch without `timeoutSeconds` ends; the longest is twice that.
pub const WATCH_TIMEOUT_MIN: Duration = Duration::from_secs(1_800);

/// How long a write of a role or a binding waits for those that were written before to count.
pub const GRANTS_WAIT: Duration = Duration::from_millis(500);

/// How long a watch of a table in several groups waits for all of them to have come to where it begins.
pub const WATCH_BEGIN_WAIT: Duration = Duration::from_millis(500);

/// Bytes that a connection gathers before it sends them without waiting for its task's next turn.
pub const CONNECTION_WRITE_BYTES: usize = 65_536;

/// How long a bookmark waits for the groups of a table in which nothing happens to close, so that it tells what is good
/// for the history window.
pub const BOOKMARK_FRESHENING: Duration = Duration::from_millis(200);

/// Time between bookmarks of a watch that asked for them.
pub const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// How long before a watch ends it is sent one more, so that it can be resumed from there.
pub const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// Time that a read waits for a revision which is not applied yet; then it is answered with 504.
pub const REVISION_WAIT: Duration = Duration::from_secs(3);

/// Time that a request waits for a resource that is defined to be served; then it is answered with 503.
pub const DEFINITION_WAIT: Duration = Duration::from_secs(3);

/// Time for which watches go on after the definition of their objects changed or went.
pub const DEFINITION_GRACE: Duration = Duration::from_secs(1);

/// Live watches of the server; more are answered with 429.
pub const WATCHES: usize = 200_000;

/// Requests in progress at a time of those who are not held by `--max-requests-inflight` and its like, watches not
/// counted; more are answered with 429.
///
/// It also bounds what one connection can begin over HTTP/2: actix-web offers no way to tell clients how many streams a
/// connection may have. How many may be reset before they are looked at is bounded by the crate h2, which closes the
/// connection.
pub const EXEMPT_REQUESTS: usize = 10_000;

/// Requests that only read and are in progress at a time, unless configured; more are answered with 429.
pub const READ_ONLY_REQUESTS: usize = 400;

/// Requests that may change something and are in progress at a time, unless configured; more are answered with 429.
pub const MUTATING_REQUESTS: usize = 200;

/// Bodies of one user that may be on their way at a time, of requests that wait for them; more are answered with 429.
pub const UPLOADS_OF_USER: usize = 100;

/// Bodies of all users together that may be on their way.
pub const UPLOADS: usize = 1_000;

/// Combinations of labels by which requests are counted; what has another one is counted as refused.
pub const REQUEST_SERIES: usize = 20_000;

/// Changes that a watch reads from the change log at a time.
pub const WATCH_BATCH_EVENTS: usize = 256;

/// Watches that are woken before those of other connections have to wait until these have sent their events.
pub const WATCHES_WOKEN_TOGETHER: usize = 64;

/// Bytes of events that a watch puts into one write to its socket.
pub const WATCH_WRITE_BYTES: usize = 65_536;

/// Objects that a list reads under one lock.
pub const LIST_CHUNK_OBJECTS: usize = 64;

/// Characters of all warnings of an answer together, as the reference has it; beyond, each is shortened to
/// [`WARNING_CHARACTERS`], and what does not fit then is left out.
pub const WARNINGS_CHARACTERS: usize = 4_096;

/// Characters of one warning where all of them are too long.
pub const WARNING_CHARACTERS: usize = 256;

/// Certificates of a chain that a client sends; longer chains do not authenticate.
pub const CLIENT_CHAIN_CERTIFICATES: usize = 8;

/// TLS sessions kept for resumption with TLS 1.2 session identifiers.
pub const TLS_SESSIONS: usize = 10_240;

/// Bytes of a bearer token; longer ones do not authenticate.
pub const TOKEN_BYTES: usize = 65_536;

/// Verified tokens that are remembered.
pub const TOKEN_CACHE_ENTRIES: usize = 16_384;

/// Bytes of a file with certificates, keys or tokens.
pub const CREDENTIAL_FILE_BYTES: u64 = 4 * 1_048_576;

/// Bytes of a configuration file.
pub const CONFIG_FILE_BYTES: u64 = 1_048_576;

/// Bytes of a list that are made at a time; the next ones are made when the connection has taken these.
pub const LIST_CHUNK_BYTES: usize = 131_072;

/// Bytes of objects that a list reads at a time, where they are large: about as many versions are kept for a client
/// that does not go on reading.
pub const LIST_READ_BYTES: usize = 524_288;

/// Bytes of a part of an answer from which on it is sent as it is stored, rather than copied between others: who waits
/// for its client holds no copy of it then.
pub const SHARED_BYTES_MIN: usize = 16_384;

/// Bytes of answers of all streams together that were made and not taken by their clients; beyond, each stream makes
/// [`AHEAD_CHUNK_BYTES`] at a time, until there are fewer.
pub const AHEAD_BYTES: usize = 64 << 20;

/// Bytes of answers that were made and not taken from which on no more lists are made as a whole, as those in YAML are:
/// clients are told to try again.
pub const WHOLE_ANSWERS_BYTES: usize = 256 << 20;

/// Bytes that a stream makes at a time when many wait for their clients.
pub const AHEAD_CHUNK_BYTES: usize = 4_096;

/// Bytes that the streams of one HTTP/2 connection give it before it has its turn to send: they wait while its socket
/// takes no more.
pub const CONNECTION_AHEAD_BYTES: usize = 131_072;

/// Time for which a client may take nothing of an answer whose time is over before its connection is closed.
pub const READER_STALL: Duration = Duration::from_secs(30);

/// Time for which a thread may not come back before that is told.
pub const STALL: Duration = Duration::from_millis(200);

/// How often threads are looked at.
pub const WATCHDOG_INTERVAL: Duration = Duration::from_millis(100);

/// Looks after which a thread that does nothing is asked all the same.
pub const WATCHDOG_IDLE_LOOKS: u32 = 10;

/// How often it is told at most that threads do not come back.
pub const STALL_TOLD_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes that a thread keeps for encoding between requests; what larger objects needed is given back.
pub const SCRATCH_BYTES: usize = 262_144;

/// Bytes above which answers are compressed for clients that take gzip, as the reference has it.
pub const GZIP_BYTES_MIN: usize = 131_072;
/// Members that may form a cluster by a host name.
pub const INITIAL_MEMBERS: usize = 9;
/// How long a member waits before it tries again to make the objects that must exist.
pub const BEGIN_INTERVAL: Duration = Duration::from_secs(1);
/// How often it tries to bring those up to date that it could not write at first.
pub const RENEWALS: usize = 10;
/// How long after an address was claimed, or a service changed, it is looked at again: whoever did it is done with the
/// other by then, if the store answered at all. As long as the reference waits.
pub const ADDRESS_SETTLE_TIME: Duration = Duration::from_secs(60);
/// How often a replica that does not lead looks whether the objects that must exist do by now.
pub const SEED_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Users of whom it is remembered in which way they were allowed to act for others.
pub const IMPERSONATORS: usize = 10_000;

/// Pods of a namespace that are looked at when it demands more of them, as the reference has it; the client is told of
/// the rest.
pub const NAMESPACE_PODS_CHECKED: usize = 3_000;

/// Time after which looking at them ends.
pub const NAMESPACE_PODS_CHECK: Duration = Duration::from_secs(1);

/// Objects that a list names which cannot be read, as the reference has it.
pub const UNREADABLE_TOLD: usize = 100;
/// Objects that are remembered as such.
pub const UNREADABLE_KNOWN: usize = 1_000;
/// Kinds that they are counted by.
pub const UNREADABLE_KINDS: usize = 64;
/// Lines of the log about them, a minute.
pub const UNREADABLE_LINES: usize = 20;

/// Bytes of stored objects that are looked at before the next pause, after a start: so that it takes a hundredth of a
/// processor.
pub const EXAMINED_BYTES: usize = 1_048_576;
/// That pause.
pub const EXAMINE_PAUSE: Duration = Duration::from_millis(50);

/// Connections that the stand-in of etcd holds on each address.
pub const STAND_IN_CONNECTIONS: usize = 256;
/// Bytes that are kept of a connection that was handed over to another protocol, until somebody takes them.
pub const TAKEN_OVER_BYTES: usize = 65_536;
/// Bytes that are passed on at a time between a client and another server.
pub const STREAM_CHUNK_BYTES: usize = 32_768;
/// Bytes of a message of a WebSocket, all its frames together; a client that sends more is left.
pub const WEBSOCKET_MESSAGE_BYTES: usize = 4 << 20;
/// Bytes of a frame of SPDY that another server sends; what has more is left.
pub const SPDY_FRAME_BYTES: usize = 1 << 20;
/// Frames of SPDY, or messages of a WebSocket, that wait to be sent.
pub const STREAM_FRAMES: usize = 16;
/// How often a server that speaks SPDY is shown that this one is still there, as the reference does it.
pub const SPDY_PING_INTERVAL: Duration = Duration::from_secs(5);
/// How long a server may take to agree to a stream of SPDY, as the reference has it.
pub const SPDY_STREAM_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes that a process may say of how it ended.
pub const PROCESS_ERROR_BYTES: usize = 65_536;
/// How long a stream may wait for its beginning: as long as nodes let one be idle.
pub const STREAM_BEGIN_TIMEOUT: Duration = Duration::from_secs(4 * 3_600);
/// Bytes of an error of a node that clients are told, as the reference has it.
pub const STREAM_ERROR_BYTES: usize = 50_000;
/// Bytes of a page of HTML whose links are rewritten; a larger one is refused.
pub const HTML_BYTES: usize = 16 << 20;

/// Group versions that other servers answer for; more are not passed on.
pub const AGGREGATED_VERSIONS: usize = 1_000;
/// How long an aggregated server may take to tell that it is there, or what it has, as the reference has it.
pub const AGGREGATED_CHECK_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of what an aggregated server tells of itself; more is not listed.
pub const AGGREGATED_DISCOVERY_BYTES: usize = 8 << 20;
/// Bytes that all aggregated servers together may add to the document of OpenAPI v2.
pub const AGGREGATED_OPENAPI_BYTES: usize = 32 << 20;
/// How often aggregated servers are asked what they have.
pub const AGGREGATED_DISCOVERY_INTERVAL: Duration = Duration::from_secs(60);
/// Aggregated servers that are asked at a time.
pub const AGGREGATED_DISCOVERY_ASKED: usize = 16;

/// What the expressions of all policies of a plugin may cost together for one write, in units of CEL: ten times what
/// those of one policy may with one parameter. The reference bounds only these.
pub const WRITE_COST: u64 = 100_000_000;
/// How long evaluating expressions about a write may hold a thread before others have their turn; one expression more
/// may be under way.
pub const EVALUATION_TURN: Duration = Duration::from_millis(5);
/// Parameters of a policy that one of its bindings may select for a write; with more it cannot be used.
pub const POLICY_PARAMETERS: usize = 10_000;
/// Decisions of the authorizer about one write that are remembered, so that it is asked once.
pub const DECISIONS_KEPT: usize = 1_000;
/// Bytes of the warnings, and of the notes for the audit log, that those who are asked about one write may leave.
pub const TOLD_BYTES: usize = 1 << 20;
/// Combinations of labels by which policies and webhooks are counted; what has another one goes by the name `others`.
pub const ADMISSION_SERIES: usize = 10_000;

/// Keys that an import names which it refuses; all of them stand in the file beside.
pub const MOVING_TOLD: usize = 100;
/// Bytes of objects of an import or export that are written together.
pub const MOVING_CHUNK_BYTES: usize = 256 << 10;
/// Objects of a page that an import asks a server for.
pub const MOVING_PAGE_OBJECTS: usize = 200;
/// Bytes of such a page; of a larger one the rest is missing, and it cannot be read.
pub const MOVING_PAGE_BYTES: u64 = 1 << 30;
/// How often an import or export tells how far it is.
pub const MOVING_PROGRESS_INTERVAL: Duration = Duration::from_secs(2);
/// Keys that share one lease, as the reference has it.
pub const MOVING_LEASE_KEYS: u64 = 1_000;

/// Slow requests that are kept to be shown.
pub const SLOW_REQUESTS: usize = 20;

/// How long they are kept.
pub const SLOW_REQUESTS_WINDOW: Duration = Duration::from_secs(600);

/// Characters of the path of a slow request that are kept.
pub const SLOW_REQUEST_PATH_CHARACTERS: usize = 256;

/// Characters of the name of its client that are kept.
pub const SLOW_REQUEST_CLIENT_CHARACTERS: usize = 96;

/// Warnings of the log that are kept to be shown.
pub const RECENT_WARNINGS: usize = 100;

/// Characters of each of them.
pub const RECENT_WARNING_CHARACTERS: usize = 600;

/// Types of requests that an overview tells: the most frequent.
pub const OVERVIEW_REQUESTS: usize = 100;

/// Resources that an overview tells: those that take most memory.
pub const OVERVIEW_RESOURCES: usize = 64;

/// Watches that are behind and that an overview tells: those that are furthest.
pub const OVERVIEW_WATCHES: usize = 10;

/// Bytes of an overview that the commands of administrators read.
pub const OVERVIEW_BYTES: u64 = 16 << 20;

/// One-time links to the console that are not used yet; the oldest make room.
pub const CONSOLE_LINKS: usize = 64;

/// How long such a link can be used.
pub const CONSOLE_LINK_LIFETIME: Duration = Duration::from_secs(300);

/// Browsers that may see the console because of a link; the oldest make room.
pub const CONSOLE_SESSIONS: usize = 256;

/// How long such a browser may see it.
pub const CONSOLE_SESSION_LIFETIME: Duration = Duration::from_secs(8 * 3_600);

/// Consoles that are kept up to date at a time; more are answered with 429.
pub const CONSOLE_STREAMS: usize = 16;

/// How often a console is brought up to date.
pub const CONSOLE_INTERVAL: Duration = Duration::from_secs(2);

/// How long a console is kept up to date until it has to ask again, so that whoever may not see it any more does not.
pub const CONSOLE_STREAM_LIFETIME: Duration = Duration::from_secs(300);
