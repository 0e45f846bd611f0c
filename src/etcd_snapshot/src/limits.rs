//! Every bound of reading snapshots, in one place.

/// Most bytes of a page with its overflow pages. etcd accepts requests of 1.5 MiB by default, and a page holds few
/// values that large.
pub const PAGE_BYTES_MAX: u64 = 256 << 20;
/// Most levels of a tree of pages. Each level has at least twice as many pages as the one above, so no file has more.
pub const TREE_LEVELS_MAX: usize = 48;
/// Largest page size that a file may state; bbolt uses that of the system that created the file.
pub const PAGE_SIZE_MAX: u64 = 1 << 16;
/// Smallest page size that a file may state.
pub const PAGE_SIZE_MIN: u64 = 1 << 10;
/// Bytes of a snapshot that are hashed at a time.
pub const HASHED_BYTES: usize = 1 << 20;
