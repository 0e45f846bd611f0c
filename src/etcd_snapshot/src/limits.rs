//! Every bound of reading snapshots, in one place.

/// Bytes of one page with all that overflows it. etcd takes requests of 1.5 MiB unless it is told otherwise, and a page
/// holds few values that large.
pub const PAGE_BYTES_MAX: u64 = 256 << 20;
/// Levels of a tree of pages. Each has at least two pages for one of the level above, so that no file has as many.
pub const TREE_LEVELS_MAX: usize = 48;
/// Bytes of a page that its header names; bbolt uses those of the system that made the file.
pub const PAGE_SIZE_MAX: u64 = 1 << 16;
/// The same, at least.
pub const PAGE_SIZE_MIN: u64 = 1 << 10;
