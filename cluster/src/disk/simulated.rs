//! A disk in memory that crashes, fills up and fails on demand.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::{Disk, DiskFile, SECTOR};
use crate::tasks;

/// Returns how long the next access to the disk takes.
pub(crate) type Pace = Arc<dyn Fn() -> Duration + Send + Sync>;

#[derive(Clone, Default)]
struct Content {
    /// The content as the process sees it.
    current: Vec<u8>,
    /// The content after a crash.
    durable: Vec<u8>,
    /// Sectors that a failed sync left marked as written: the next sync skips them.
    forgotten: BTreeSet<usize>,
}

impl Content {
    /// Returns the sectors that are not completely durable.
    fn changed(&self) -> Vec<usize> {
        let sectors = self.current.chunks(SECTOR).enumerate();
        let durable = |sector: usize| self.durable.get(sector * SECTOR..).unwrap_or_default();
        sectors.filter(|(sector, bytes)| !durable(*sector).starts_with(bytes)).map(|(sector, _)| sector).collect()
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if end > self.current.len() {
            self.current.resize(end, 0);
        }
        self.current[offset..end].copy_from_slice(bytes);
        if !self.forgotten.is_empty() {
            self.forgotten.retain(|sector| !(offset / SECTOR..end.div_ceil(SECTOR)).contains(sector));
        }
    }

    fn sync(&mut self) {
        let before = std::mem::replace(&mut self.durable, self.current.clone());
        for sector in &self.forgotten {
            let range = sector * SECTOR..((sector + 1) * SECTOR).min(self.durable.len());
            let lost = before.get(range.start..).unwrap_or_default();
            let kept = lost.len().min(range.len());
            self.durable[range.clone()].fill(0);
            self.durable[range.start..range.start + kept].copy_from_slice(&lost[..kept]);
        }
    }
}

#[derive(Default)]
struct State {
    files: BTreeMap<PathBuf, Arc<Mutex<Content>>>,
    room: Option<u64>,
    syncs_until_failure: Option<u64>,
    pace: Option<Pace>,
    witness: Option<AccessObserver>,
}

/// A kind of access to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Called before every access to a file, on the thread that makes it.
type AccessObserver = Arc<dyn Fn(&Path, Access) + Send + Sync>;

/// A disk in memory. File names are durable at once, contents when synced.
#[derive(Clone, Default)]
pub(crate) struct SimulatedDisk(Arc<Mutex<State>>);

impl SimulatedDisk {
    /// Returns the disk after a power failure. Each unsynced sector of 512 bytes is kept or not, as `kept(file size,
    /// sector)` decides. Files opened before write to the old disk.
    pub(crate) fn crash(&self, mut kept: impl FnMut(usize, usize) -> bool) -> SimulatedDisk {
        let state = self.0.lock();
        let mut after = State { pace: state.pace.clone(), ..State::default() };
        for (path, content) in &state.files {
            let content = content.lock();
            let mut bytes = content.durable.clone();
            bytes.resize(content.current.len().max(bytes.len()), 0);
            for sector in 0..bytes.len().div_ceil(SECTOR) {
                let range = sector * SECTOR..((sector + 1) * SECTOR).min(content.current.len());
                if range.start < range.end
                    && bytes[range.clone()] != content.current[range.clone()]
                    && kept(bytes.len(), sector)
                {
                    bytes[range.clone()].copy_from_slice(&content.current[range]);
                }
            }
            let content = Content { current: bytes.clone(), durable: bytes, ..Content::default() };
            after.files.insert(path.clone(), Arc::new(Mutex::new(content)));
        }
        SimulatedDisk(Arc::new(Mutex::new(after)))
    }

    /// Makes work on the disk take as long as `pace` says, in time that a test lets pass.
    pub(crate) fn set_pace(&self, pace: Pace) {
        self.0.lock().pace = Some(pace);
    }

    /// Calls `witness` before every read and write from now on. It may take its time, as a disk does now and then.
    pub(crate) fn set_witness(&self, witness: impl Fn(&Path, Access) + Send + Sync + 'static) {
        self.0.lock().witness = Some(Arc::new(witness));
    }

    /// Limits the disk to this many more bytes; `None` removes the limit.
    pub(crate) fn set_room(&self, room: Option<u64>) {
        self.0.lock().room = room;
    }

    /// Lets this many more syncs succeed, and then makes all fail until [`SimulatedDisk::heal`].
    pub(crate) fn fail_sync_after(&self, syncs: u64) {
        self.0.lock().syncs_until_failure = Some(syncs);
    }

    /// Makes syncs succeed again. Like a real disk, this one does not report the sectors that a failed sync left out.
    pub(crate) fn heal(&self) {
        self.0.lock().syncs_until_failure = None;
    }

    /// Changes the bytes of a file in place, as decay would.
    pub(crate) fn alter(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let file = self.0.lock().files[path].clone();
        let mut content = file.lock();
        change(&mut content.current);
        content.durable = content.current.clone();
        content.forgotten.clear();
    }

    /// Returns the content of a file.
    pub(crate) fn bytes(&self, path: &Path) -> Vec<u8> {
        self.0.lock().files[path].lock().current.clone()
    }

    /// Returns the files with their sizes.
    pub(crate) fn files(&self) -> Vec<(PathBuf, usize)> {
        self.0.lock().files.iter().map(|(path, content)| (path.clone(), content.lock().current.len())).collect()
    }
}

struct SimulatedFile {
    /// The path of the file when it was opened.
    path: PathBuf,
    content: Arc<Mutex<Content>>,
    disk: SimulatedDisk,
}

impl SimulatedFile {
    fn report(&self, access: Access) {
        let witness = self.disk.0.lock().witness.clone();
        witness.iter().for_each(|witness| witness(&self.path, access));
    }
}

impl DiskFile for SimulatedFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.content.lock().current.len() as u64)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        self.report(Access::Read);
        let content = self.content.lock();
        let bytes = content.current.get(offset as usize..).unwrap_or_default();
        let length = bytes.len().min(out.len());
        out[..length].copy_from_slice(&bytes[..length]);
        Ok(length)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.report(Access::Write);
        let mut disk = self.disk.0.lock(); // before the file, as everywhere
        let mut content = self.content.lock();
        let end = offset as usize + bytes.len();
        let more = end.saturating_sub(content.current.len()) as u64;
        if disk.room.is_some_and(|room| room < more) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        disk.room = disk.room.map(|room| room - more);
        content.write(offset as usize, bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = self.disk.0.lock();
        let mut content = self.content.lock();
        match &mut disk.syncs_until_failure {
            Some(0) => {
                let forgotten = content.changed();
                content.forgotten.extend(forgotten);
                return Err(io::Error::other("simulated failure of a sync"));
            }
            Some(left) => *left -= 1,
            None => {}
        }
        drop(disk);
        content.sync();
        Ok(())
    }
}

impl Disk for SimulatedDisk {
    fn create_directory(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        Ok(self.0.lock().files.keys().filter(|path| path.parent() == Some(directory)).cloned().collect())
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let content = self.0.lock().files.get(path).cloned().ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(SimulatedFile { path: path.to_path_buf(), content, disk: self.clone() }))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let content = Arc::<Mutex<Content>>::default();
        self.0.lock().files.insert(path.to_path_buf(), content.clone());
        Ok(Box::new(SimulatedFile { path: path.to_path_buf(), content, disk: self.clone() }))
    }

    fn preallocate(&self, path: &Path, size: u64) -> io::Result<Box<dyn DiskFile>> {
        let file = self.create(path)?;
        file.write_at(0, &vec![0; size as usize])?;
        file.sync()?;
        Ok(file)
    }

    fn room(&self, _: &Path) -> io::Result<u64> {
        Ok(self.0.lock().room.unwrap_or(u64::MAX))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        let content = state.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.files.insert(to.to_path_buf(), content);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        let content = state.files.remove(path).ok_or(io::ErrorKind::NotFound)?;
        let size = content.lock().current.len() as u64;
        state.room = state.room.map(|room| room + size);
        Ok(())
    }

    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn work(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        let pace = self.0.lock().pace.clone();
        async move {
            match pace {
                Some(pace) => {
                    tokio::time::sleep(pace()).await;
                    work();
                }
                None => drop(tasks::blocking(work).await),
            }
        }
        .boxed()
    }
}
