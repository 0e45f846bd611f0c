//! Uses large memory pages while a large store is opened.
//!
//! The system provides memory page by page, at the first use of each. For a large store this costs more than anything
//! else during a start. Pages of 2 MiB cost a fifth of it, but unused parts of them stay allocated. So the allocator
//! asks for large pages wherever it can, and the process disables them (prctl(2), `PR_SET_THP_DISABLE`) except during
//! the start, which fills memory from one end to the other. Pages that were provided stay large. Without support by the
//! system nothing here has an effect.

use std::fs;
use std::path::Path;

use crate::limits::LARGE_PAGES_FROM_BYTES;

/// Disables large pages from now on. A process calls this first.
pub fn refuse() {
    let _ = rustix::thread::disable_transparent_huge_pages(true); // fails only where there are none
}

/// Enables large pages for as long as it lives.
pub struct LargePages(());

impl LargePages {
    /// Enables large pages if the directories of a store are large; `None` if they are small.
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

/// Returns the bytes of all files below a directory. Skips what cannot be read.
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
