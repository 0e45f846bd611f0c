//! The limits of controllers.

use std::time::Duration;

/// Namespaces that are emptied concurrently.
pub const NAMESPACES_EMPTIED: usize = 8;

/// Tables of which the remaining objects in one namespace are followed, to notice when one is gone; other tables are
/// polled.
pub const NAMESPACE_FOLLOWED_TABLES: usize = 16;

/// Longest pause of a controller before it retries a key.
pub const CONTROLLER_BACKOFF: Duration = Duration::from_secs(60);

/// Objects whose finalizers of protection are processed concurrently.
pub const PROTECTION_WORKERS: usize = 4;

/// Delay from a change to the processing of a protected object. Meanwhile, users that were admitted before become
/// visible on every replica. Many changes in a row need only one check.
pub const PROTECTION_SETTLE: Duration = Duration::from_millis(500);

/// Delay from the deletion of a namespace to the first listing of its content. Meanwhile writes that were admitted
/// before become visible on every replica. Clients can observe the terminating namespace with its content for the same
/// time as in the reference.
pub const NAMESPACE_SETTLE: Duration = Duration::from_secs(5);

/// Delay before a removed namespace is searched once more for objects that were stored late.
pub const NAMESPACE_SWEEP: Duration = Duration::from_secs(2);

/// Delay before a removed namespace is searched for the last time. While a group has no leader, writes that were
/// admitted before are retried for some time.
pub const NAMESPACE_LAST_SWEEP: Duration = Duration::from_secs(40);

/// Longest time between two checks of the remaining content of a namespace.
pub const NAMESPACE_RECHECK: Duration = Duration::from_secs(15);

/// Objects of one resource in a namespace that are deleted concurrently.
pub const NAMESPACE_DELETIONS: usize = 32;

/// Definitions whose objects are removed concurrently.
pub const DEFINITION_WORKERS: usize = 4;

/// Objects of one definition that are deleted concurrently.
pub const DEFINITION_DELETIONS: usize = 32;

/// Delay from the deletion of a definition to the first listing of its objects, and from the first to the second search
/// for objects without a selectable field. Meanwhile, objects that were admitted by the former definition become
/// visible on every replica.
pub const DEFINITION_SETTLE: Duration = Duration::from_millis(500);

/// Time between two checks of the remaining objects of a definition.
pub const DEFINITION_RECHECK: Duration = Duration::from_secs(1);

/// Delay until the table of a removed definition is searched once more: while a group has no leader, creates that were
/// admitted before the deletion are retried for some time, and can be stored late.
pub const DEFINITION_SWEEP: Duration = Duration::from_secs(40);

/// Objects that the garbage collector processes concurrently.
pub const GARBAGE_WORKERS: usize = 32;

/// Time that the followers of all tables get to catch up, so that the garbage collector removes an owner only when its
/// existing dependents are known.
pub const GARBAGE_SETTLE: Duration = Duration::from_millis(20);

/// Delay before an object is checked again whose owner has a kind that is not served.
pub const GARBAGE_UNKNOWN_KIND_RECHECK: Duration = Duration::from_secs(60);

/// Namespaces that concurrently get the objects that every namespace has; the store batches the writes.
pub const EACH_NAMESPACE_WORKERS: usize = 16;

/// Secrets for tokens that are processed concurrently; the store batches their writes.
pub const TOKEN_SECRET_WORKERS: usize = 8;

/// How long a token in a Secret must be unused before it is refused, and again before it is removed: the default of
/// `--legacy-service-account-token-clean-up-period` of kube-controller-manager, in seconds.
pub const LEGACY_TOKEN_UNUSED_SECONDS: i64 = 365 * 86_400;

/// Interval between two searches for unused tokens in Secrets.
pub const LEGACY_TOKEN_SEARCH_INTERVAL: Duration = Duration::from_secs(86_400);

/// Pods of missing nodes that are processed concurrently.
pub const LOST_POD_WORKERS: usize = 8;

/// How long these pods stay after their node went missing, since a kubelet may register the node again.
pub const LOST_POD_QUARANTINE: Duration = Duration::from_secs(40);

/// Quotas that are counted concurrently.
pub const QUOTA_WORKERS: usize = 4;

/// Delay from a change to the count of a quota, so that many changes need one count only.
pub const QUOTA_SETTLE: Duration = Duration::from_secs(2);

/// Delay from a change of a range of service addresses to its processing, so that many changes need one check only.
pub const SERVICE_CIDR_SETTLE: Duration = Duration::from_secs(2);

/// How long a range of service addresses stays after its deletion. After that time, every server has seen the deletion,
/// and none allocates an address from the range.
pub const SERVICE_CIDR_GRACE: Duration = Duration::from_secs(10);

/// API services that are checked concurrently.
pub const API_SERVICE_WORKERS: usize = 5;

/// Delay from a write of a policy to the check of its types, so that the client that is writing it does not run into
/// conflicts.
pub const POLICY_TYPES_SETTLE: Duration = Duration::from_secs(5);

/// How long a server stays published after its connection broke, as in the reference for a lease that is not renewed.
pub const SERVER_ABSENCE_MAX: Duration = Duration::from_secs(15);

/// Interval of checks whether a connected server has become a member.
pub const SERVER_ADMISSION_INTERVAL: Duration = Duration::from_secs(2);

/// Duration of the lease that identifies a server, in seconds, as in the reference. A lease stays this long after its
/// server last renewed it.
pub const IDENTITY_LEASE_SECONDS: i64 = 3_600;

/// Interval of the renewals of that lease; short enough that several may fail before the lease expires.
pub const IDENTITY_RENEWAL_INTERVAL: Duration = Duration::from_secs(600);

/// Delay before a failed renewal is retried.
pub const IDENTITY_RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Delay before that lease is created again after its deletion.
pub const IDENTITY_SETTLE: Duration = Duration::from_secs(2);

/// How long an object stays at least after it was written, even if it has expired: its writer may want to read it.
pub const EXPIRY_SETTLE: Duration = Duration::from_secs(10);

/// Delay from a change of an object of the server to its check. It bounds how often the server writes an object that
/// others keep changing.
pub const UPKEEP_SETTLE: Duration = Duration::from_secs(2);

/// How long an object stays that falsely claims to belong to the server.
pub const UPKEEP_UNWANTED_LIFETIME: Duration = Duration::from_secs(10);

/// Longest validity of a certificate that clients request.
pub const SIGNED_VALIDITY_MAX: Duration = Duration::from_secs(365 * 86_400);

/// Shortest validity of a certificate that clients request.
pub const SIGNED_VALIDITY_MIN: Duration = Duration::from_secs(600);

/// Events that are removed concurrently; the store batches their writes.
pub const EVENT_REMOVALS: usize = 64;

/// Longest time from the expiry of an event to its removal. It is shorter if the lifetime of events is short.
pub const EVENT_PAUSE_MAX: Duration = Duration::from_secs(60);

/// Shortest time between two searches for expired events.
pub const EVENT_PAUSE_MIN: Duration = Duration::from_secs(1);

/// Delay before a controller retries a key after its first failure; doubled with each further one.
pub const CONTROLLER_BACKOFF_MIN: Duration = Duration::from_millis(5);

/// Pause before a follower that lost its position lists the table again.
pub const FOLLOW_PAUSE: Duration = Duration::from_millis(100);
