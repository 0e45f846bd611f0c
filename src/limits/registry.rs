//! The limits of reading and writing objects.

use std::time::Duration;

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

/// How long a read waits for a revision that is not applied yet; then it gets 504.
pub const REVISION_WAIT: Duration = Duration::from_secs(3);

/// How long a request waits until a defined resource is served; then it gets 503.
pub const DEFINITION_WAIT: Duration = Duration::from_secs(3);

/// How long watches continue after the definition of their objects changed or was deleted.
pub const DEFINITION_GRACE: Duration = Duration::from_secs(1);

/// How long after an address was claimed, or a service changed, the repair checks it. By then the write has ended, if
/// the store answered at all. As long as in the reference.
pub const ADDRESS_SETTLE_TIME: Duration = Duration::from_secs(60);

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

/// Requirements of selectors that objects are compared with between two looks at the clock.
pub const SELECTION_CHECKS: usize = 100_000;

/// The length of the longest generated name, in bytes. Most kinds allow no longer names.
pub const GENERATED_NAME_BYTES: usize = 63;

/// Objects that the repair of addresses and ports reads at a time.
pub const REPAIR_CHUNK_OBJECTS: usize = 512;

/// Changes of services that are read at a time to learn which node ports are taken.
pub const PORT_CHUNK_CHANGES: usize = 512;

/// Ranges of service addresses that are considered.
pub const ADDRESS_RANGES_MAX: usize = 256;

/// Requirements of a selector that are compared with the filters of objects. More comparisons would take longer than
/// reading the objects.
pub const FILTERED_REQUIREMENTS: usize = 16;

/// Values of a requirement above which the requirement is not compared with the filters.
pub const FILTERED_VALUES: usize = 32;

/// The time in which those log lines are counted.
pub const UNREADABLE_LINES_INTERVAL: Duration = Duration::from_secs(60);
