//! Memory in large pages, while a store with much in it is opened.
//!
//! The system gives memory a page at a time, when it is used for the first time. For all that a large store has, that
//! is more work than anything else of a start. Pages of 2 MiB cost a fifth of it, but what is not used of them is held
//! all the same. So the allocator asks for them wherever it can, and the process has them refused (prctl(2),
//! `PR_SET_THP_DISABLE`) but for that time, in which memory is filled from one end to the other. What was given stays
//! as it is. Where the system gives no such pages, nothing of this has an effect.

use std::fs;
use std::path::Path;

use crate::limits::LARGE_PAGES_FROM_BYTES;

/// Has large pages refused from now on. The first thing that a process does.
pub fn refuse() {
    let _ = rustix::thread::disable_transparent_huge_pages(true); // a system that has none refuses nothing
}

/// Large pages are taken as long as this lives.
pub struct LargePages(());

impl LargePages {
    /// For a store whose directories hold much.
    pub fn for_store(directory: &Path) -> Option<LargePages> {
        (bytes_below(directory) >= LARGE_PAGES_FROM_BYTES).then(|| {
            let _ = rustix::thread::disable_transparent_huge_pages(false);
            LargePages(())
        })
    }
}

impl Drop for LargePages {
    fn drop(&mut self) {
        refuse();
    }
}

/// Bytes of all files below a directory, as far as it can be read.
fn bytes_below(directory: &Path) -> u64 {
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    fs::read_dir(directory).map_or(0, |entries| entries.flatten().map(bytes).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn files_are_counted_wherever_they_are() {
        let directory = Scratch::new();
        fs::create_dir(directory.join("inner")).unwrap();
        fs::write(directory.join("one"), [0; 10]).unwrap();
        fs::write(directory.join("inner/two"), [0; 100]).unwrap();
        assert_eq!(bytes_below(&directory.join(".")), 110);
        assert_eq!(bytes_below(&directory.join("none")), 0);
    }
}
