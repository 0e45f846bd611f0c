//! Every bound of the store, in one place.

use std::time::Duration;

/// Largest encoded object, in bytes: somewhat more than the 3 MiB that Kubernetes clients may send, for the fields that
/// the server adds.
pub const OBJECT_BYTES_MAX: usize = 4 << 20;
/// Writes that may wait in one group. A further write fails with `QueueFull`.
pub const GROUP_WRITES_MAX: usize = 16_384;
/// Bytes of the objects of the writes that may wait in one group. A further write fails with `QueueFull`.
pub const GROUP_BYTES_MAX: usize = 256 << 20;
/// Writes in one log entry.
pub const BATCH_WRITES_MAX: usize = 1_024;
/// Bytes of objects after which a log entry takes no further write.
pub const BATCH_BYTES_MAX: usize = 2 << 20;
/// Log entries of one group that are proposed and not yet applied.
pub const BATCHES_IN_FLIGHT_MAX: usize = 2;
/// Messages that may wait for a shard actor or a broadcaster. There are few senders, and they wait when the mailbox is
/// full.
pub const MAILBOX_MESSAGES_MAX: usize = 1_024;
/// Writes applied under one write lock of a table, which bounds how long readers wait.
pub const APPLY_UNDER_LOCK_MAX: usize = 64;
/// Objects examined under one read lock of a table.
pub const SCAN_UNDER_LOCK_MAX: usize = 512;
/// Changes copied or dropped under one lock of a change log.
pub const CHANGES_UNDER_LOCK_MAX: usize = 512;
/// Changes that one read of a subscription examines.
pub const CHANGES_PER_READ_MAX: usize = 4_096;
/// Pause before a task that failed begins again.
pub const TASK_RESTART_DELAY: Duration = Duration::from_secs(1);
/// The smallest number of objects that are read ahead from each shard when several are merged, unless the reader wants
/// fewer.
pub const READ_AHEAD_OBJECTS_MIN: usize = 16;
/// Attempts to take a snapshot, or to read an object at a revision. An attempt fails if the revision leaves the history
/// meanwhile.
pub const SNAPSHOT_ATTEMPTS: usize = 64;
/// Interval between two log lines about the progress of opening a store.
pub const OPENING_PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which tables drop history that has left the history window.
pub const TRIM_INTERVAL: Duration = Duration::from_secs(1);
/// How long superseded versions and changes can be read, unless configured.
pub const HISTORY_AGE_MAX: Duration = Duration::from_secs(300);
/// Bytes of memory that the history of one table may take, unless configured.
pub const HISTORY_BYTES_MAX: usize = 1 << 30;
/// How long a snapshot of a table keeps its revision readable, unless configured.
pub const SNAPSHOT_HOLD_MAX: Duration = Duration::from_secs(120);
/// Points in time that are remembered of the history window, at most, to tell how old a revision is.
pub const CLOSED_TIMES_MAX: u32 = 1_024;
/// A closed revision is renewed on demand once it is older than this fraction of the history window: 1 /
/// `CLOSED_AGE_MAX_DIVISOR`.
pub const CLOSED_AGE_MAX_DIVISOR: u32 = 10;
/// Age after which the encodings of a change that the server shares between watchers are dropped.
pub const SHARED_ENCODING_AGE: Duration = Duration::from_secs(5);
/// How long a write may take before its outcome is reported as unknown.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Size of a segment of the write-ahead log.
pub const WAL_SEGMENT_BYTES: u64 = 32 << 20;
/// Bytes after which a frame of the log takes no further record. The last record of a full batch may exceed it.
pub const WAL_FRAME_BYTES: usize = 4 << 20;
/// Whole frames that may wait for the disk before a leader stops proposing. Without this nothing would hold clients
/// back: other replicas may already have made the writes durable.
pub const WAL_FRAMES_WAITING_MAX: usize = 4;
/// How long writes may wait for the disk in this way before the leader hands over to another replica.
pub const WAL_PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of the buffer of frames that the writer of the log keeps; the memory of a larger one is freed.
pub const WAL_BUFFER_BYTES: usize = 1 << 20;
/// Bytes of the log that one read takes when the log is read back, unless a frame is longer.
pub const WAL_READ_BYTES: usize = 1 << 20;
/// Bytes of the log that are never reserved for writes, but kept for votes and other records of the groups themselves.
pub const WAL_HEADROOM_BYTES: usize = 1 << 20;
/// Interval at which the log tries again to grow after the disk had no room, when nothing is written meanwhile.
pub const WAL_ROOM_INTERVAL: Duration = Duration::from_secs(1);
/// How long to wait before trying again to make room for a record that must be written and for which none was reserved.
pub const WAL_RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// Zeros that are written to a file at once, in bytes.
pub const DISK_ZEROS_BYTES: usize = 1 << 20;
/// Bytes of decoded log entries that are cached for each group.
pub const ENTRY_CACHE_BYTES: usize = 32 << 20;
/// Bytes after which a chunk of a snapshot takes nothing more.
pub const SNAPSHOT_CHUNK_BYTES: usize = 1 << 20;
/// Pause after a failed snapshot before the next attempt. Each further failure doubles it.
pub const SNAPSHOT_RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// The longest pause after a failed snapshot.
pub const SNAPSHOT_RETRY_INTERVAL_MAX: Duration = Duration::from_secs(64);
/// How long Raft may take to know a snapshot that was written.
pub const SNAPSHOT_ANNOUNCED_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of entries that are applied together when a store is opened, unless one entry is larger.
pub const REPLAY_CHUNK_BYTES: usize = 8 << 20;
/// Chunks of entries that are decoded before they can be applied, when a store is opened.
pub const REPLAY_CHUNKS_MAX: usize = 4;
/// Messages about entries that may wait to be applied while the log is still being read.
pub const ANNOUNCED_MESSAGES_MAX: usize = 64;
/// Entries in one message about entries to apply: about 60 bytes of memory each.
pub const ANNOUNCED_ENTRIES_MAX: usize = 1_024;
/// Threads that decode a snapshot while it is being read.
pub const SNAPSHOT_DECODERS: usize = 2;
/// Bytes of a snapshot that are written and made durable at once.
pub const SNAPSHOT_WRITE_BYTES: usize = 4 << 20;
/// Interval between two writes of a snapshot for which nobody waits: 16 MiB/s at first, twice as fast after each
/// minute.
pub const SNAPSHOT_WRITE_INTERVAL: Duration = Duration::from_millis(250);
/// How long the state from which a snapshot is written is held. A snapshot that takes longer is abandoned.
pub const SNAPSHOT_WRITE_TIMEOUT: Duration = Duration::from_secs(900);
/// Bytes after which a chunk of a backup takes nothing more.
pub const BACKUP_CHUNK_BYTES: usize = 256 << 10;
/// Size of a chunk above which a backup is reported as damaged: the largest content before the last object of a chunk,
/// and one object with its names and terms.
pub const BACKUP_CHUNK_BYTES_MAX: usize = 64 << 20;
/// How long the state from which a backup is taken is held. A backup that takes longer is abandoned.
pub const BACKUP_TIMEOUT: Duration = Duration::from_secs(900);
/// Attempts to start a backup. An attempt fails if its revision leaves the history before it can be held.
pub const BACKUP_ATTEMPTS: usize = 16;
/// Chunks of a backup whose objects are written at the same time while it is restored.
pub const RESTORE_CHUNKS_IN_FLIGHT: usize = 16;
/// Bytes appended to a group's log after which a new snapshot of it is written, unless its objects take more.
pub const SNAPSHOT_LOG_BYTES: u64 = 256 << 20;
/// A group keeps bytes of the shared log from being freed. The group's log counts as grown by these bytes divided by
/// this factor, if the group itself has appended less since its last snapshot.
pub const SNAPSHOT_HELD_FACTOR: u64 = 4;
/// Log entries that are applied together.
pub const APPLY_ENTRIES_MAX: usize = 64;
/// How long an elected replica may take to apply everything before its election.
pub const LEADER_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause before an elected replica checks again whether it has applied everything.
pub const LEADER_BEGIN_INTERVAL: Duration = Duration::from_millis(100);
/// Largest frame between replicas, in bytes. The payload of a call must be smaller by [`PEER_FRAME_HEADER_BYTES`].
pub const PEER_FRAME_BYTES_MAX: usize = 16 << 20;
/// Bytes of a frame besides its payload, at most.
pub const PEER_FRAME_HEADER_BYTES: usize = 64;
/// Bytes of the text with which a peer's request is refused. The rest is cut off.
pub const PEER_REFUSAL_BYTES: usize = 4 << 10;
/// Slowest link between replicas that is supported, in bytes per second. The time limit of a call grows by the time
/// that sending it and the bytes queued before it take at this speed.
pub const PEER_BYTES_PER_SECOND_MIN: usize = 1 << 20;
/// Calls to one peer on one lane that may wait for an answer. A further call fails with `QueueFull`.
pub const PEER_CALLS_MAX: usize = 4_096;
/// Pings to a peer that may wait besides these calls.
pub const PEER_PINGS_MAX: usize = 64;
/// Payload bytes of the calls that wait. A further call fails with `QueueFull`.
pub const PEER_CALL_BYTES_MAX: usize = 64 << 20;
/// Requests of one connection that may be in progress here. It is a multiple of the calls that may wait at the caller,
/// since the caller may have given up on some. A further request is refused.
pub const PEER_REQUESTS_MAX: usize = 4 * PEER_CALLS_MAX;
/// Bytes of these requests, and also of the answers that wait to be sent. A further request is refused.
pub const PEER_REQUEST_BYTES_MAX: usize = 2 * PEER_CALL_BYTES_MAX;
/// Frames of any kind that may wait to be sent on a connection. Beyond, the connection is closed.
pub const PEER_FRAMES_MAX: usize = 2 * PEER_REQUESTS_MAX;
/// Bytes of frames after which one write to a peer takes no further frame.
pub const PEER_WRITE_BYTES: usize = 256 << 10;
/// Bytes that one read from a peer's socket may return, unless a frame is longer.
pub const PEER_READ_BYTES: usize = 64 << 10;
/// How long connecting to a peer may take, and how long the peer may take to identify itself.
pub const PEER_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long connecting to an address may go unanswered before a new attempt.
pub const PEER_CONNECT_INTERVAL: Duration = Duration::from_millis(300);
/// Pause before connecting again after a first failure. Each further failure doubles it.
pub const PEER_RETRY_MIN: Duration = Duration::from_millis(10);
/// The longest pause before connecting again.
pub const PEER_RETRY_MAX: Duration = Duration::from_secs(1);
/// How long after the last call to a peer a broken connection is still re-established.
pub const PEER_RETRY_AGE: Duration = Duration::from_secs(60);
/// Interval between two log lines about an unreachable address, as long as the reason is the same.
pub const PEER_LOG_INTERVAL: Duration = Duration::from_secs(60);
/// Longest silence of either side on a control connection: an idle side sends a beat.
pub const PEER_KEEPALIVE_INTERVAL: Duration = Duration::from_millis(250);
/// Silence on a control connection after which the peer is considered dead.
pub const PEER_DEAD_AFTER: Duration = Duration::from_secs(1);
/// Silence on a control connection after which, when it ends, the other connections to the peer are probed: the link
/// may have been interrupted.
pub const PEER_INTERRUPTION_MIN: Duration = Duration::from_millis(300);
/// How long a probed connection may stay silent before it is replaced, in addition to the time for sending the bytes
/// that are queued before the probe. TCP itself would retransmit after ever longer times.
pub const PEER_PROBE_TIMEOUT: Duration = Duration::from_millis(50);
/// Interval at which the other connections are checked.
pub const PEER_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// How long the kernel waits for acknowledgements of sent data, and of probes on idle connections.
pub const PEER_TCP_TIMEOUT: Duration = Duration::from_secs(5);
/// Age after which a connection on which an unexpected member answers is made again: the host name may resolve to
/// another address by now.
pub const PEER_IDENTITY_AGE: Duration = Duration::from_secs(5);
/// How long a call waits for its answer, at most.
pub const PEER_CALL_TIMEOUT_MAX: Duration = Duration::from_secs(3_600);
/// Accepted connections that have not identified themselves yet. A further one replaces the oldest.
pub const PEER_GREETINGS_MAX: usize = 128;
/// Connections that are accepted from peers. Further ones are closed at once.
pub const PEER_CONNECTIONS_MAX: usize = 256;
/// Connections that may wait in the kernel to be accepted.
pub const PEER_BACKLOG_CONNECTIONS: i32 = 128;
/// How long opening a store waits for another process that still holds the lock on its directory.
pub const LOCK_WAIT: Duration = Duration::from_secs(2);
/// Interval at which it tries to take the lock.
pub const LOCK_INTERVAL: Duration = Duration::from_millis(20);
/// How long a store that is shut down waits for its groups before it closes the log.
pub const STOP_WAIT: Duration = Duration::from_secs(5);
/// Addresses to which connections are kept at a time. A call to a further one fails with `QueueFull`.
pub const PEER_ADDRESSES_MAX: usize = 256;
/// Members whose reachability is remembered. Beyond, unreachable ones are forgotten.
pub const PEER_MEMBERS_MAX: usize = 256;
/// Shards of one table.
pub const SHARDS_MAX: u16 = 64;
/// Data groups, besides the default one: as many as the eight bits of a revision that hold the group's number allow.
pub const GROUPS_MAX: u16 = 255;
/// Former divisions of a table that are remembered. This bounds how often its shards can be changed within the history
/// window without losing older history.
pub const DIVISIONS_MAX: usize = 16;
/// Bytes of objects after which a step that fills a shard takes no further object.
pub const FILLING_BYTES_MAX: usize = 512 << 10;
/// Objects in a step that fills a shard.
pub const FILLING_OBJECTS_MAX: usize = 512;
/// How far a shard that is being filled may lag behind the newest change when the old shards are ended, in
/// milliseconds.
pub const FILLING_LAG_MS: u64 = 100;
/// How long changes are collected before a shard that is being filled takes them over.
pub const FILLING_INTERVAL: Duration = Duration::from_millis(10);
/// How long the state from which a shard is filled is held.
pub const FILLING_HOLD: Duration = Duration::from_secs(900);
/// Interval at which the division of a table is looked at when nothing wakes it.
pub const DIVIDING_INTERVAL: Duration = Duration::from_millis(100);
/// Pause before a failed step of a division is tried again.
pub const DIVIDING_RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// Interval at which the founders of a new group look whether it has been formed.
pub const FORMATION_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How long the other founders of a new group wait for the leader of the group `default` to form it before they do.
pub const GROUP_FORMATION_WAIT: Duration = Duration::from_secs(3);
/// Requests to close up to a revision that may wait in a group. Beyond, the read that makes the request fails.
pub const GROUP_CLOSES_MAX: usize = 16_384;
/// Interval at which groups are asked to close for subscribers: at most one entry of each group in this time.
pub const CLOSING_INTERVAL: Duration = Duration::from_millis(2);
/// Pause before a group that could not be closed is asked again.
pub const CLOSING_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Interval at which a read that waits for a revision looks up its groups again.
pub const REACHING_INTERVAL: Duration = Duration::from_millis(200);
/// How long a read of a replica's own state waits for that state to be closed, which takes a majority.
pub const LOCAL_READ_WAIT: Duration = Duration::from_millis(100);
/// How long a read waits until a group is closed up to a revision.
pub const CLOSING_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which a leader without other messages sends heartbeats, and the time limit of a heartbeat and its
/// answer.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(200);
/// How long after any other message to a replica a leader sends no heartbeat to it.
pub const HEARTBEAT_PAUSE: Duration = Duration::from_millis(100);
/// How long a replica receives nothing from its leader before it stands for election: at least the end of this range,
/// in which it votes for no other candidate, and then a random time from the range.
pub const ELECTION_TIMEOUT: std::ops::Range<Duration> = Duration::from_millis(350)..Duration::from_millis(500);
/// Interval at which a replica checks which others are reachable, and whether heartbeats, rests or elections are due.
pub const PULSE_INTERVAL: Duration = Duration::from_millis(100);
/// Silence of another replica after which its groups consider it missing. A group that rests because the replica was
/// reachable wakes then. Longer than the end of [`ELECTION_TIMEOUT`], until which other replicas vote for no other
/// candidate.
pub const PEER_SILENCE_MAX: Duration = Duration::from_millis(600);
/// How far ahead of the clock a revision assigned by others must be before the clock is advanced to it. A group that
/// assigns more than 1,024 revisions per millisecond for a while gets ahead of the clock by itself.
pub const CLOCK_LEAD_MAX: Duration = Duration::from_secs(1);
/// Bound on the drift between the clocks of two machines: the time spans that the two measure differ by at most one
/// part in this many. Linux slews clocks by up to a tenth (adjtimex(2)). A virtual machine that is suspended while its
/// clocks stand still exceeds the bound.
pub const CLOCK_DRIFT_PARTS: u64 = 8;
/// How long a replica that is in no group, as far as is known, may still lead one.
pub const CLOCK_ABSENCE_MAX: Duration = Duration::from_secs(10);
/// How long a replica may take to answer with a reading of its clock before it is considered unreachable.
pub const CLOCK_ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// How long another replica must reach more members than this leader does before it leads instead: when a member comes
/// or goes, not all replicas notice at once.
pub const REACHES_FEWER_PATIENCE: Duration = Duration::from_millis(500);
/// How long no majority of the members is reachable before this is logged.
pub const MAJORITY_PATIENCE: Duration = Duration::from_secs(3);
/// Interval of calls to members with which this replica is not connected in both directions.
pub const REACHABILITY_CALL_INTERVAL: Duration = Duration::from_secs(1);
/// How much later each further replica in the order of succession considers a silent leader missing.
pub const MISSING_INTERVAL: Duration = Duration::from_millis(100);
/// How long a group must be idle before it rests.
pub const REST_AFTER: Duration = Duration::from_secs(3);
/// How often a leader looks for groups that can rest.
pub const REST_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which an excluded replica asks again whether it is a member. When it is admitted again, the replica that
/// admits it tells it so.
pub const EXCLUDED_INTERVAL: Duration = Duration::from_secs(30);
/// How long other replicas may take to agree that groups rest. Meanwhile these groups send no heartbeats.
pub const REST_TIMEOUT: Duration = Duration::from_millis(250);
/// How long after a group woke its leader may lack the confirmation of a first heartbeat.
pub const REST_WAKING: Duration = ELECTION_TIMEOUT.end;
/// How long a leader may receive nothing from a majority before it no longer counts as the leader.
pub const QUORUM_SILENCE_MAX: Duration = Duration::from_secs(2);
/// Appends of one group to one replica that may be in flight at once.
pub const APPENDS_IN_FLIGHT_MAX: usize = 16;
/// Bytes of these appends above which the next one waits for an answer: this is enough to keep a slow link busy, and
/// bytes in flight are sent again when a link breaks.
pub const APPEND_BYTES_IN_FLIGHT_MAX: usize = 4 << 20;
/// How long entries may take to become durable on another replica before they are sent to it again, after a pause,
/// together with the entries that were committed meanwhile. The connection does not lose messages, so this is longer
/// than an occasional slow write of a disk. A replica whose disk is full keeps received entries in memory, and answers
/// later.
pub const APPEND_TIMEOUT: Duration = Duration::from_millis(500);
/// Pause before a group calls a replica again that could not be reached.
pub const PEER_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Bytes of a piece of a snapshot that is sent to another replica.
pub const SNAPSHOT_PIECE_BYTES: usize = 1 << 20;
/// Segments of the log for which the disk must still have room when a snapshot is received.
pub const SNAPSHOT_SPARE_SEGMENTS: u64 = 3;
/// How long a piece of a snapshot may take to be received and written.
pub const SNAPSHOT_PIECE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a received snapshot may take to be installed.
pub const SNAPSHOT_INSTALL_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a write or a read waits for a group to have a leader before it fails.
pub const LEADER_WAIT: Duration = Duration::from_secs(4);
/// Searches for the leader of a group during one change of its members or leader, at most. A new one begins if the
/// asked replica does not lead after an attempt that took long, such as to let a new member catch up.
pub const LEADER_SEARCHES_MAX: u32 = 8;
/// How long a question to the leader of a group may take before it is asked again.
pub const LEADER_CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a read waits until this replica has applied up to its read point, once that is known.
pub const READ_POINT_WAIT: Duration = Duration::from_secs(10);
/// Reads that are served by one round of questions to the leader.
pub const READS_PER_ROUND_MAX: usize = 4_096;
/// The version of the peer protocol that this release speaks.
pub const PEER_VERSION: u32 = 1;
/// Interval at which replicas that have no cluster yet look for the others.
pub const FORMATION_INTERVAL: Duration = Duration::from_millis(200);
/// Interval at which a single replica looks for the initial members that its options name.
pub const OUTLOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Addresses of one host name at which members are looked for, at most.
pub const MEMBERS_FOUND_MAX: usize = 64;
/// How long another replica may take to identify itself.
pub const HELLO_TIMEOUT: Duration = Duration::from_secs(1);
/// How long an admission waits for the new replica to identify itself.
pub const ADMISSION_WAIT: Duration = Duration::from_secs(10);
/// Interval between two log lines that a starting replica waits for a quorum.
pub const READY_WARNING_INTERVAL: Duration = Duration::from_secs(10);
/// Repeated writes that the leader of a group remembers.
pub const REPEATED_WRITES_MAX: usize = 4_096;
/// Pause before a write that may have happened is attempted again.
pub const ATTEMPT_INTERVAL: Duration = Duration::from_millis(20);
/// How long a write is attempted before its outcome is reported as unknown.
pub const ATTEMPTS_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause before the next question, after a replica has answered that it does not lead.
pub const LEADER_RETRY_INTERVAL: Duration = Duration::from_millis(5);
/// Interval of the heartbeats of a replica without others, which reach nobody. Its election timeout is a multiple.
pub const SINGLE_REPLICA_HEARTBEAT_INTERVAL: Duration = Duration::from_millis(500);
/// How often a change of members is tried when other changes come first. [`ATTEMPT_INTERVAL`] is the pause between two
/// tries.
pub const CHANGES_BEGUN_MAX: u32 = 200;
/// How long a new member may take to receive everything.
pub const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(600);
/// Interval at which the leader meanwhile checks whether the new member is still there.
pub const CATCH_UP_INTERVAL: Duration = Duration::from_secs(1);
/// How long a member that must catch up may be gone, as for a restart, before the leader stops waiting for it.
pub const CATCH_UP_SILENCE_MAX: Duration = Duration::from_secs(15);
/// Entries that a replica may lack when it is given a vote: it gets them while the change is made.
pub const CAUGHT_UP_ENTRIES_MAX: u64 = 64;
/// How long a replica may take to take over from a leader.
pub const TRANSFER_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a leader waits for others to receive its whole log before it hands over.
pub const TRANSFER_WAIT: Duration = Duration::from_secs(1);
/// How long a leader that is stopping waits for one replica to take over before it asks the next.
pub const TRANSFER_PATIENCE: Duration = Duration::from_millis(150);
/// How long the others may take to say whether anybody has led since a leader asked a replica to take over.
pub const MANDATE_TIMEOUT: Duration = ELECTION_TIMEOUT.start;
/// How long a group stays with the member that it was transferred to before leaders are spread evenly again.
pub const TRANSFER_HOLD: Duration = Duration::from_secs(600);
/// How long a drained member tries to hand over groups that no other member can take yet, before it reports them.
pub const DRAIN_WAIT: Duration = Duration::from_secs(10);
/// How long a member may take to hand over everything that it leads.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(120);
/// Subscribers of a table that are examined under their lock to find those that are behind. Passing over those before
/// the first examined one takes some nanoseconds each.
pub const SUBSCRIBERS_EXAMINED_MAX: usize = 16_384;
/// Interval at which leaders are spread over the members.
pub const BALANCE_INTERVAL: Duration = Duration::from_secs(1);
/// How long a replica may take to check whether anything still listens at the address of a leader.
pub const SUCCESSION_CHECK_TIMEOUT: Duration = Duration::from_millis(300);
/// How long the next replica in the order of succession waits for the one before it to take over from a leader that is
/// gone.
pub const SUCCESSION_INTERVAL: Duration = Duration::from_millis(150);
