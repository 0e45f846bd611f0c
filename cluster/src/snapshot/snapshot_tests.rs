//! How fast snapshots are written, and which are kept. Tests that open stores again check their content.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{Meta, Pace, Snapshots};
use crate::disk::simulated::SimulatedDisk;
use crate::disk::{Disk, DiskFile};
use crate::limits::{SNAPSHOT_WRITE_BYTES, SNAPSHOT_WRITE_INTERVAL, SNAPSHOT_WRITE_TIMEOUT};
use crate::wal::LogRef;

#[test]
fn a_gentle_snapshot_leaves_the_disk_to_others_and_ends() {
    let (none, quick) = (Duration::ZERO, Duration::from_millis(1));
    assert_eq!(Pace::Fast.pause(none, quick), none);
    assert_eq!(Pace::Gentle.pause(none, quick), SNAPSHOT_WRITE_INTERVAL - quick);
    let slow = 2 * SNAPSHOT_WRITE_INTERVAL;
    assert_eq!(Pace::Gentle.pause(none, slow), slow, "as long as the disk was used");
    let (mut elapsed, mut bytes) = (none, 0);
    while bytes < 64 << 30 {
        elapsed += quick + Pace::Gentle.pause(elapsed, quick);
        bytes += SNAPSHOT_WRITE_BYTES;
    }
    assert!(elapsed < SNAPSHOT_WRITE_TIMEOUT, "{elapsed:?}");
}

/// A disk on which all snapshots but the newest vanish as soon as they are listed.
struct Removing(SimulatedDisk);

impl Disk for Removing {
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.0.create_directory(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let files = self.0.list(directory)?;
        let is_snapshot = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "snap");
        let newest = files.iter().filter(is_snapshot).max();
        files
            .iter()
            .filter(is_snapshot)
            .filter(|path| Some(*path) != newest)
            .try_for_each(|path| self.0.remove(path))?;
        Ok(files)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.0.open(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.0.create(path)
    }

    fn preallocate(&self, path: &Path, size: u64) -> io::Result<Box<dyn DiskFile>> {
        self.0.preallocate(path, size)
    }

    fn room(&self, directory: &Path) -> io::Result<u64> {
        self.0.room(directory)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.0.sync_directory(path)
    }
}

#[test]
fn a_new_snapshot_spares_unfinished_files_and_tolerates_removed_ones() {
    let disk = SimulatedDisk::default();
    let snapshots = Snapshots::open(Arc::new(Removing(disk.clone())), "/snapshots".into()).unwrap();
    let written: &Path = Path::new("/snapshots/0000000000000003.tmp");
    disk.create(written).unwrap();
    let adopt = |index| {
        let received = snapshots.incoming("a", 0, 0).unwrap().finish().unwrap();
        let last = Some(LogRef { term: 1, node: 1, index });
        snapshots.adopt(&received, &Meta { last, ..Meta::default() }).unwrap()
    };
    adopt(1);
    let newest = adopt(5);
    let left: Vec<PathBuf> = disk.files().into_iter().map(|(path, _)| path).collect();
    assert_eq!(left, [written.to_path_buf(), newest]);
}
