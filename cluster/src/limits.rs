//! Every bound of the store, in one place.

use std::time::Duration;

/// Largest encoded object, in bytes: a little over what Kubernetes clients may send (3 MiB), for what the server adds.
pub const OBJECT_BYTES_MAX: usize = 4 << 20;
/// Writes that may wait in one group. Beyond, a write fails with `QueueFull`.
pub const GROUP_WRITES_MAX: usize = 16_384;
/// Bytes of the objects of the writes that may wait in one group. Beyond, a write fails with `QueueFull`.
pub const GROUP_BYTES_MAX: usize = 256 << 20;
/// Writes in one log entry.
pub const BATCH_WRITES_MAX: usize = 1_024;
/// Bytes of objects after which a log entry takes no further write.
pub const BATCH_BYTES_MAX: usize = 2 << 20;
/// Log entries of one group that are proposed and not yet applied.
pub const BATCHES_IN_FLIGHT_MAX: usize = 2;
/// Messages that may wait for a shard actor or a broadcaster; their senders are few and wait.
pub const MAILBOX_MESSAGES_MAX: usize = 1_024;
/// Writes applied under one write lock of a table, so that readers wait at most for these.
pub const APPLY_UNDER_LOCK_MAX: usize = 64;
/// Objects examined under one read lock of a table.
pub const SCAN_UNDER_LOCK_MAX: usize = 512;
/// Changes copied or dropped under one lock of a change log.
pub const CHANGES_UNDER_LOCK_MAX: usize = 512;
/// Changes that one read of a subscription examines.
pub const CHANGES_PER_READ_MAX: usize = 4_096;
/// How often a store that is being opened tells how far it is.
pub const OPENING_PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// How often tables are asked to drop what left the history window.
pub const TRIM_INTERVAL: Duration = Duration::from_secs(1);
/// How many moments of the history window are remembered at most, to tell how old history is.
pub const AGE_MARKS_MAX: u32 = 1_024;
/// The revision that is told of a table in which nothing happens is of the last of so many parts of the history window.
pub const FRESHNESS_PARTS: u32 = 10;
/// Age after which the encodings that the server shares between watchers of a change are dropped.
pub const SHARED_ENCODING_AGE: Duration = Duration::from_secs(5);
/// How long a write may take before its outcome is called unknown.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Size of a segment of the write-ahead log.
pub const WAL_SEGMENT_BYTES: u64 = 32 << 20;
/// Bytes after which a frame of the log takes no further record; one more record of a full batch may go beyond.
pub const WAL_FRAME_BYTES: usize = 4 << 20;
/// Whole frames that may wait for the disk before a leader proposes no more: others may have made its writes durable
/// already, so that nothing else holds clients back.
pub const WAL_FRAMES_WAITING_MAX: usize = 4;
/// How long writes may wait for that before others are to lead.
pub const WAL_PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of the log that are read at once when it is read back, unless a frame is longer.
pub const WAL_READ_BYTES: usize = 1 << 20;
/// Room in the log that is never reserved for writes: for votes and other records of the groups themselves.
pub const WAL_HEADROOM_BYTES: usize = 1 << 20;
/// How often a disk that had no room for the log to grow is tried again, when nothing is written meanwhile.
pub const WAL_ROOM_INTERVAL: Duration = Duration::from_secs(1);
/// How long to wait before trying again to make room for what must be written and was not reserved for.
pub const WAL_RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// Log entries that are kept decoded for each group, in bytes.
pub const ENTRY_CACHE_BYTES: usize = 32 << 20;
/// Bytes after which a chunk of a snapshot takes nothing more.
pub const SNAPSHOT_CHUNK_BYTES: usize = 1 << 20;
/// How long after a snapshot that could not be written another is begun; twice that after each that follows.
pub const SNAPSHOT_RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// How long that is at most.
pub const SNAPSHOT_RETRY_INTERVAL_MAX: Duration = Duration::from_secs(64);
/// Bytes of entries after which what is applied together when a store is opened takes no further entry.
pub const REPLAY_CHUNK_BYTES: usize = 8 << 20;
/// How many of these are read and decoded, or wait to be applied.
pub const REPLAY_CHUNKS_MAX: usize = 4;
/// How many messages about entries wait for whoever applies them while the log is being read.
pub const ANNOUNCED_MESSAGES_MAX: usize = 64;
/// Entries of one of these: about 60 bytes of memory each.
pub const ANNOUNCED_ENTRIES_MAX: usize = 1_024;
/// Threads that decode a snapshot while it is being read.
pub const SNAPSHOT_DECODERS: usize = 2;
/// Bytes of a snapshot that are written and made durable at once.
pub const SNAPSHOT_WRITE_BYTES: usize = 4 << 20;
/// How often that is done for a snapshot that nobody waits for: 16 MiB/s, twice that after a minute, and so on.
pub const SNAPSHOT_WRITE_INTERVAL: Duration = Duration::from_millis(250);
/// How long the state that a snapshot is written of is held; a snapshot that takes longer is given up.
pub const SNAPSHOT_WRITE_TIMEOUT: Duration = Duration::from_secs(900);
/// Bytes after which a chunk of a backup takes nothing more.
pub const BACKUP_CHUNK_BYTES: usize = 256 << 10;
/// Bytes of a chunk beyond which a backup is called damaged: what is before the last object of a chunk, and one object
/// with its names and terms.
pub const BACKUP_CHUNK_BYTES_MAX: usize = 64 << 20;
/// How long the state that a backup is taken of is held; a backup that takes longer is given up.
pub const BACKUP_TIMEOUT: Duration = Duration::from_secs(900);
/// How often a backup is begun again whose revision leaves the history before it is held.
pub const BACKUP_ATTEMPTS: usize = 16;
/// Chunks of a backup whose objects are written at the same time when it is restored.
pub const RESTORE_CHUNKS_IN_FLIGHT: usize = 16;
/// Bytes appended to a group's log after which a new snapshot of it is written, unless the objects take more.
pub const SNAPSHOT_LOG_BYTES: u64 = 256 << 20;
/// How many times the bytes after which a group's own entries cause a snapshot the log of all groups may have, before
/// one that holds it back by an old entry writes a snapshot.
pub const SNAPSHOT_HELD_FACTOR: u64 = 4;
/// Log entries applied together.
pub const APPLY_ENTRIES_MAX: usize = 64;
/// How long a replica that was elected may take to apply everything before it.
pub const LEADER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long it pauses before it looks again, if it leads still.
pub const LEADER_BEGIN_INTERVAL: Duration = Duration::from_millis(100);
/// Largest frame between replicas, in bytes; what a call carries must be smaller by [`PEER_FRAME_HEADER_BYTES`].
pub const PEER_FRAME_BYTES_MAX: usize = 16 << 20;
/// Bytes of a frame beside what it carries, at most.
pub const PEER_FRAME_HEADER_BYTES: usize = 64;
/// Bytes of the text with which a peer's request is refused; the rest is cut off.
pub const PEER_REFUSAL_BYTES: usize = 4 << 10;
/// Bytes a second that a link between replicas carries at least: a call may take so much longer as what is to be sent
/// before it and with it takes at that.
pub const PEER_BYTES_PER_SECOND_MIN: usize = 1 << 20;
/// Calls of one peer on one lane that wait for an answer. Beyond, a call fails with `QueueFull`.
pub const PEER_CALLS_MAX: usize = 4_096;
/// Questions whether a peer is there that may wait beside as many calls as may.
pub const PEER_PINGS_MAX: usize = 64;
/// Bytes that these carry. Beyond, a call fails with `QueueFull`.
pub const PEER_CALL_BYTES_MAX: usize = 64 << 20;
/// Requests of one connection that may be under way here; a multiple of the calls that wait there, since a caller
/// may have given up on some. Beyond, a request is refused.
pub const PEER_REQUESTS_MAX: usize = 4 * PEER_CALLS_MAX;
/// Bytes of these, and also of the answers that wait to be sent. Beyond, a request is refused.
pub const PEER_REQUEST_BYTES_MAX: usize = 2 * PEER_CALL_BYTES_MAX;
/// Frames that wait to be sent on a connection, of any kind, after which it is given up.
pub const PEER_FRAMES_MAX: usize = 2 * PEER_REQUESTS_MAX;
/// Bytes of frames after which one write to a peer takes no further.
pub const PEER_WRITE_BYTES: usize = 256 << 10;
/// Room for which a peer's socket is read at once, unless a frame needs more.
pub const PEER_READ_BYTES: usize = 64 << 10;
/// How long connecting to a peer may take, or a peer to say who it is.
pub const PEER_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long an address may be silent before it is connected to anew.
pub const PEER_CONNECT_INTERVAL: Duration = Duration::from_millis(300);
/// How long to wait before connecting again after a first failure; doubled with each further one.
pub const PEER_RETRY_MIN: Duration = Duration::from_millis(10);
/// How long to wait before connecting again, at most.
pub const PEER_RETRY_MAX: Duration = Duration::from_secs(1);
/// How long after the last call of a peer a broken connection is still made again.
pub const PEER_RETRY_AGE: Duration = Duration::from_secs(60);
/// How often it is said in the log that an address cannot be reached, as long as the reason is the same.
pub const PEER_TOLD_INTERVAL: Duration = Duration::from_secs(60);
/// How long a side of a control connection is silent at most.
pub const PEER_BEAT_INTERVAL: Duration = Duration::from_millis(250);
/// Silence on a control connection after which the peer is taken for dead.
pub const PEER_DEAD_AFTER: Duration = Duration::from_secs(1);
/// Silence on a control connection that tells, when it ends, of a link that may have been interrupted: the other
/// connections are probed then.
pub const PEER_INTERRUPTION_MIN: Duration = Duration::from_millis(300);
/// How long a connection that was probed may stay silent, besides the time that it takes to send what comes before the
/// probe, until it is made anew: TCP tries what was lost again after ever longer times.
pub const PEER_PROBE_TIMEOUT: Duration = Duration::from_millis(50);
/// How often other connections are looked after.
pub const PEER_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// How long the kernel waits for acknowledgements: of what was sent, and on idle connections of probes.
pub const PEER_TCP_TIMEOUT: Duration = Duration::from_secs(5);
/// Age after which a connection on which another member answers is made anew: the name may have moved on.
pub const PEER_IDENTITY_AGE: Duration = Duration::from_secs(5);
/// How long a call waits for its answer at most.
pub const PEER_CALL_TIMEOUT_MAX: Duration = Duration::from_secs(3_600);
/// Connections that may have yet to say whose they are. When another comes, the oldest of them is closed.
pub const PEER_GREETINGS_MAX: usize = 128;
/// Connections that are taken from peers. Further ones are closed at once.
pub const PEER_CONNECTIONS_MAX: usize = 256;
/// Connections that may wait to be taken.
pub const PEER_BACKLOG_CONNECTIONS: i32 = 128;
/// How long a store that is opened waits for a process that still has its directory.
pub const LOCK_WAIT: Duration = Duration::from_secs(2);
/// How often it looks.
pub const LOCK_INTERVAL: Duration = Duration::from_millis(20);
/// How long a store that is shut down waits for its groups, before it closes the log under them.
pub const STOP_WAIT: Duration = Duration::from_secs(5);
/// Addresses that are called at a time. Beyond, a call fails with `QueueFull`.
pub const PEER_ADDRESSES_MAX: usize = 256;
/// Members that are remembered as reachable or not; beyond, those that are not reachable are forgotten.
pub const PEER_MEMBERS_MAX: usize = 256;
/// Shards of one table.
pub const SHARDS_MAX: u16 = 64;
/// Data groups, besides the default one: what the eight bits of a revision that tell groups apart can number.
pub const GROUPS_MAX: u16 = 255;
/// Former divisions of a table that are remembered: how often its shards can be changed within the history window
/// before what is older can no longer be read.
pub const DIVISIONS_MAX: usize = 16;
/// Bytes of objects after which a step that fills a shard takes no further object.
pub const FILLING_BYTES_MAX: usize = 512 << 10;
/// Objects in a step that fills a shard.
pub const FILLING_OBJECTS_MAX: usize = 512;
/// How far behind the newest change a shard that is being filled may be when the one before it is to end, in
/// milliseconds.
pub const FILLING_LAG_MS: u64 = 100;
/// How long changes are gathered before a shard that is being filled takes them over.
pub const FILLING_INTERVAL: Duration = Duration::from_millis(10);
/// How long the state that a shard is filled from is held.
pub const FILLING_HOLD: Duration = Duration::from_secs(900);
/// How long a change of a table's shards waits before it looks again when nothing tells it to.
pub const DIVIDING_INTERVAL: Duration = Duration::from_millis(100);
/// How long a step of it that failed waits before it is tried again.
pub const DIVIDING_RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// How often the founders of a new group look whether it is formed.
pub const FORMATION_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How long the other founders of a new group wait for the leader of the group `default` to form it.
pub const GROUP_FORMATION_WAIT: Duration = Duration::from_secs(3);
/// Requests to close a group up to a revision that may wait in it. Beyond, the read that needs one fails.
pub const GROUP_CLOSES_MAX: usize = 16_384;
/// How often groups are asked to close for the sake of subscribers: at most one entry of each group in this time.
pub const CLOSING_INTERVAL: Duration = Duration::from_millis(2);
/// How long to wait before a group that could not be closed is asked again.
pub const CLOSING_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// How often a read that waits for a revision looks anew which groups it waits for.
pub const REACHING_INTERVAL: Duration = Duration::from_millis(200);
/// How long a read of what a replica has waits until that is closed, for which a majority is needed.
pub const LOCAL_READ_WAIT: Duration = Duration::from_millis(100);
/// How long a read waits until a group is closed up to a revision.
pub const CLOSING_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a leader tells the others that it is there, when it has nothing else to tell; and how long such a message
/// and its answer may take.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(200);
/// How long after anything else that a leader has told a replica no heartbeat is sent to it.
pub const HEARTBEAT_PAUSE: Duration = Duration::from_millis(100);
/// How long a replica hears nothing of its leader before it stands for election: the end of this range, in which nobody
/// votes for another, and then a random time of it.
pub const ELECTION_TIMEOUT: std::ops::Range<Duration> = Duration::from_millis(350)..Duration::from_millis(500);
/// How often it is looked whether other replicas are there, and what leaders have to tell.
pub const PULSE_INTERVAL: Duration = Duration::from_millis(100);
/// How long nothing is heard of another replica before its groups miss it, and what rests in the belief that it is
/// there wakes. Longer than [`ELECTION_TIMEOUT`] keeps others from giving votes.
pub const PEER_SILENCE_MAX: Duration = Duration::from_millis(600);
/// How far revisions that others have assigned are ahead of the clock before the clock goes forward to them. A group
/// that assigns more than 1,024 in a millisecond for a while gets ahead by itself.
pub const CLOCK_LEAD_MAX: Duration = Duration::from_secs(1);
/// Of so many parts of the time that passes on one machine, not more than one passes on none of the others, or on them
/// in addition: Linux lets clocks be slewed by up to a tenth (adjtimex(2)). A virtual machine that is suspended, and
/// whose clocks do not count that, goes beyond it.
pub const CLOCK_DRIFT_PARTS: u64 = 8;
/// How long a replica that is in no group, as far as is known, is still taken for one that may lead.
pub const CLOCK_ABSENCE_MAX: Duration = Duration::from_secs(10);
/// How long a replica may take to answer what its clock shows, before it is taken for one that hears nothing.
pub const CLOCK_ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// How long another replica reaches more members than this one before that one is to lead in its place: when a member
/// comes or goes, not all notice at once.
pub const HEMMED_PATIENCE: Duration = Duration::from_millis(500);
/// How long no majority of the members is heard before the log says so.
pub const MAJORITY_PATIENCE: Duration = Duration::from_secs(3);
/// How often those are called who are not heard of or do not hear this replica.
pub const HEARING_INTERVAL: Duration = Duration::from_secs(1);
/// How much longer the next replica waits than the one before it until it misses a leader that is silent.
pub const MISSING_INTERVAL: Duration = Duration::from_millis(100);
/// How long nothing happens in a group before it rests.
pub const REST_AFTER: Duration = Duration::from_secs(3);
/// How often a leader looks for groups that can rest.
pub const REST_INTERVAL: Duration = Duration::from_secs(1);
/// How often a replica that was told that it is no member asks whether that is still so: whoever admits it says so.
pub const EXCLUDED_INTERVAL: Duration = Duration::from_secs(30);
/// How long others may take to agree that groups rest; meanwhile these send no heartbeats.
pub const REST_TIMEOUT: Duration = Duration::from_millis(250);
/// How long a leader may hear nothing of a majority before it is not counted as a leader any more.
pub const QUORUM_SILENCE_MAX: Duration = Duration::from_secs(2);
/// Appends of one group to one replica that are under way at once.
pub const APPENDS_IN_FLIGHT_MAX: usize = 16;
/// Bytes of these, beyond which the next waits for an answer: a slow link is kept busy by less, and what is on its way
/// when a link breaks is sent again.
pub const APPEND_BYTES_IN_FLIGHT_MAX: usize = 4 << 20;
/// How long entries may take to be durable on another replica before they are sent to it again, after a pause, with
/// what has been committed meanwhile. They cannot be lost on the way, so that it is longer than a disk takes now and
/// then; but one that has no room keeps in memory what it is told, and goes on answering by that for a while.
pub const APPEND_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a group waits before it calls a replica again that could not be reached.
pub const PEER_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Size of a piece of a snapshot that is sent to another replica.
pub const SNAPSHOT_PIECE_BYTES: usize = 1 << 20;
/// Segments of the log for which a snapshot that is received must leave room.
pub const SNAPSHOT_SPARE_SEGMENTS: u64 = 3;
/// How long a piece of a snapshot may take to be received and written down.
pub const SNAPSHOT_PIECE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a snapshot that was received may take to be installed.
pub const SNAPSHOT_INSTALL_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a write or a read waits for a group to have a leader, before it is told that there is none.
pub const LEADER_WAIT: Duration = Duration::from_secs(4);
/// How often a change of members or leaders, which may take long, is asked of whoever leads after that.
pub const LEADER_SEARCHES_MAX: u32 = 8;
/// How long a question to the leader of a group may take before it is asked again.
pub const LEADER_CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a read waits until this replica has what was acknowledged before, once it knows how much that is.
pub const READ_POINT_WAIT: Duration = Duration::from_secs(10);
/// Reads that one round of questions to the leader serves.
pub const READS_PER_ROUND_MAX: usize = 4_096;
/// What this release understands of what other replicas say.
pub const PEER_VERSION: u32 = 1;
/// How often replicas that have no cluster yet look for the others.
pub const FORMATION_INTERVAL: Duration = Duration::from_millis(200);
/// How often a replica that is alone looks for the others that it was started with.
pub const OUTLOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Addresses of one host name at which members are looked for, at most.
pub const MEMBERS_FOUND_MAX: usize = 64;
/// How long another replica may take to say who it is.
pub const HELLO_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a replica that is to be admitted is waited for until it says who it is.
pub const ADMISSION_WAIT: Duration = Duration::from_secs(10);
/// How often a starting replica says that it waits for a quorum.
pub const READY_WARNING_INTERVAL: Duration = Duration::from_secs(10);
/// Writes that were asked for more than once, which the leader of a group remembers.
pub const REPEATED_WRITES_MAX: usize = 4_096;
/// How long to wait before a write is asked for again that may have happened.
pub const ATTEMPT_INTERVAL: Duration = Duration::from_millis(20);
/// How long a write is asked for again before its outcome is called unknown.
pub const ATTEMPTS_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait before the next question, after a replica has said that it does not lead.
pub const LEADER_RETRY_INTERVAL: Duration = Duration::from_millis(5);
/// How often a replica that has no others looks at its own clock.
pub const LONE_INTERVAL: Duration = Duration::from_millis(500);
/// How often a change of members is begun at most, when others come before it: that often with a pause of
/// [`ATTEMPT_INTERVAL`].
pub const CHANGES_BEGUN_MAX: u32 = 200;
/// How long a new member may take to receive everything.
pub const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(600);
/// How often it is looked meanwhile whether it is still there.
pub const CATCH_UP_INTERVAL: Duration = Duration::from_secs(1);
/// How long a member that is to catch up may be gone, as for a restart, before it is not waited for any more.
pub const CATCH_UP_SILENCE_MAX: Duration = Duration::from_secs(15);
/// How long a replica may take to take over from a leader.
pub const TRANSFER_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a leader waits for others to have what is in its log before it hands over.
pub const TRANSFER_WAIT: Duration = Duration::from_secs(1);
/// How long a leader that is to stop waits for one replica to take over before it asks the next.
pub const TRANSFER_PATIENCE: Duration = Duration::from_millis(150);
/// How long the others may take to say whether anybody leads since a leader has asked a replica to take over.
pub const MANDATE_TIMEOUT: Duration = ELECTION_TIMEOUT.start;
/// How long a group stays with the member that it was transferred to, before leaders are spread evenly again.
pub const TRANSFER_HOLD: Duration = Duration::from_secs(600);
/// How long a member that is drained tries to hand over what nobody can take at first, before it says so.
pub const DRAIN_WAIT: Duration = Duration::from_secs(10);
/// How long a member may take to hand over everything that it leads.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(120);
/// Subscribers of a table that are looked at under their lock to find those that are behind.
pub const SUBSCRIBERS_LOOKED_AT_MAX: usize = 16_384;
/// How often leaders are spread over the members.
pub const BALANCE_INTERVAL: Duration = Duration::from_secs(1);
/// How long a look may take whether somebody still listens at the address of a leader.
pub const SUCCESSION_CHECK_TIMEOUT: Duration = Duration::from_millis(300);
/// How long the next replica waits for the one before it to succeed a leader that is gone.
pub const SUCCESSION_INTERVAL: Duration = Duration::from_millis(150);
