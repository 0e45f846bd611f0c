//! The identity of this replica: kept in its data directory, and new when the directory is empty.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::chance;
use crate::disk::Disk;

/// The identity of a replica. A replica that lost its disk comes back with another id, so that it cannot vote twice in
/// a term.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Its name.
    pub(crate) name: String,
    /// Its id: random, and never zero.
    pub(crate) id: u64,
    /// The id of its cluster; empty before it belongs to one.
    pub(crate) cluster: String,
}

/// The reason why a replica stops if it has lost entries that it acknowledged. It has lost votes as well, and could
/// break promises that depend on them.
pub(crate) const FORFEITED: &str = "this replica has lost entries that it had acknowledged: its data is an older copy, or a \
    part of it is gone; start it with an empty data directory, and join it again";

/// The name of a replica that has never had others.
pub(crate) const SINGLE_NAME: &str = "flotilla";

/// The identity of this replica and the file that it is kept in.
pub(crate) struct IdentityFile {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    current: Mutex<Identity>,
}

/// The name of the file.
pub(crate) const FILE: &str = "member";
/// The name of the file while it is written.
pub(crate) const UNFINISHED_FILE: &str = "member.tmp";
/// The name of the file that says that the identity must not be used any more.
pub(crate) const FORFEIT: &str = "forfeit";
const FORMAT: &str = "flotilla member 1";

impl IdentityFile {
    /// Returns the path of the identity in a data directory.
    pub(crate) fn path(directory: &Path) -> PathBuf {
        directory.join(FILE)
    }

    /// Returns whether a data directory contains an identity.
    pub(crate) fn is_there(disk: &dyn Disk, directory: &Path) -> io::Result<bool> {
        Ok(disk.list(directory)?.contains(&IdentityFile::path(directory)))
    }

    /// Reads the identity in a data directory, or creates one of this name when there is none. A replica that was the
    /// only one until now takes the new name, since no other knows its old one; the name is stored once the replica
    /// belongs to a cluster. Without a name the identity is opened whatever its name is.
    ///
    /// # Errors
    /// Fails when the file cannot be read or written, is damaged, or belongs to a member of another name.
    pub(crate) fn open(disk: Arc<dyn Disk>, directory: &Path, name: Option<&str>) -> io::Result<IdentityFile> {
        let path = IdentityFile::path(directory);
        let files = disk.list(directory)?;
        if files.contains(&directory.join(FORFEIT)) {
            return Err(io::Error::other(FORFEITED));
        }
        let known = files.contains(&path);
        let found = match known {
            true => Some(parse(&read(&*disk, &path)?).ok_or_else(|| invalid(&path, "it is damaged"))?),
            false => None,
        };
        let is_new = found.is_none();
        let name = name.or(found.as_ref().map(|found| &*found.name)).unwrap_or(SINGLE_NAME).to_owned();
        let new = || Identity { name: name.clone(), id: (chance::number() >> 1).max(1), ..Identity::default() };
        let mut identity = found.unwrap_or_else(new);
        if identity.name == SINGLE_NAME && identity.cluster.is_empty() {
            identity.name = name;
        } else if identity.name != name {
            let what = format!(
                "it is of the member {:?}, not of {name:?}: start it as that member, with its name and its peer address",
                identity.name
            );
            return Err(invalid(&path, &what));
        }
        let current = Mutex::new(identity);
        let file = IdentityFile { disk, directory: directory.to_path_buf(), current };
        if is_new {
            file.write(&file.get())?;
        }
        Ok(file)
    }

    /// Gives the identity up for good: it cannot be opened again.
    pub(crate) fn forfeit(&self) -> io::Result<()> {
        self.disk.create(&self.directory.join(FORFEIT))?.sync()?;
        self.disk.sync_directory(&self.directory)
    }

    /// Returns the identity.
    pub(crate) fn get(&self) -> Identity {
        self.current.lock().clone()
    }

    /// Makes this replica belong to a cluster, for good. Returns false when it belongs to another one.
    pub(crate) fn belong(&self, cluster: &str) -> io::Result<bool> {
        let mut current = self.current.lock();
        if current.cluster.is_empty() {
            let next = Identity { cluster: cluster.to_owned(), ..current.clone() };
            self.write(&next)?;
            *current = next;
        }
        Ok(current.cluster == cluster)
    }

    fn write(&self, identity: &Identity) -> io::Result<()> {
        let (path, unfinished) = (IdentityFile::path(&self.directory), self.directory.join(UNFINISHED_FILE));
        let file = self.disk.create(&unfinished)?;
        file.write_at(0, text(identity).as_bytes())?;
        file.sync()?;
        self.disk.rename(&unfinished, &path)?;
        self.disk.sync_directory(&self.directory)
    }
}

fn invalid(path: &Path, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", path.display()))
}

fn read(disk: &dyn Disk, path: &Path) -> io::Result<String> {
    let file = disk.open(path)?;
    let mut bytes = vec![0; file.size()?.min(4096) as usize];
    let read = file.read_at(0, &mut bytes)?;
    bytes.truncate(read);
    String::from_utf8(bytes).map_err(|_| invalid(path, "it is no text"))
}

/// Returns the text of the file: a line with the format, one for each field, and one with the checksum of the lines
/// above.
fn text(identity: &Identity) -> String {
    let Identity { name, id, cluster } = identity;
    let mut text = format!("{FORMAT}\nname {name}\nid {id:x}\ncluster {cluster}\n");
    let checksum = crc32c::crc32c(text.as_bytes());
    let _ = writeln!(text, "crc32c {checksum:08x}"); // writing to a string does not fail
    text
}

fn parse(text: &str) -> Option<Identity> {
    let (content, checksum) = text.split_at_checked(text.find("crc32c ")?)?;
    let checksum = u32::from_str_radix(checksum.strip_prefix("crc32c ")?.trim_end(), 16).ok()?;
    let mut lines = content.lines();
    if checksum != crc32c::crc32c(content.as_bytes()) || lines.next() != Some(FORMAT) {
        return None;
    }
    let name = lines.next()?.strip_prefix("name ")?.to_owned();
    let id = u64::from_str_radix(lines.next()?.strip_prefix("id ")?, 16).ok()?;
    let cluster = lines.next()?.strip_prefix("cluster ")?.to_owned();
    Some(Identity { name, id, cluster })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::simulated::SimulatedDisk;

    #[test]
    fn an_identity_is_created_once_and_kept() {
        let disk: Arc<dyn Disk> = Arc::new(SimulatedDisk::default());
        let directory = Path::new("/member");
        disk.create_directory(directory).unwrap();
        let first = IdentityFile::open(disk.clone(), directory, Some("a")).unwrap();
        assert_ne!(first.get().id, 0);
        assert!(first.belong("one").unwrap());
        assert!(!first.belong("two").unwrap());
        let again = IdentityFile::open(disk.clone(), directory, Some("a")).unwrap();
        assert_eq!(again.get(), first.get());
        assert_eq!(again.get().cluster, "one");
        assert!(IdentityFile::open(disk, directory, Some("b")).is_err());
    }

    #[test]
    fn a_single_replica_takes_a_new_name_when_it_joins_a_cluster() {
        let disk: Arc<dyn Disk> = Arc::new(SimulatedDisk::default());
        let directory = Path::new("/member");
        disk.create_directory(directory).unwrap();
        let alone = IdentityFile::open(disk.clone(), directory, Some(SINGLE_NAME)).unwrap().get();
        // The name is not stored as long as the replica belongs to no cluster: opened under its old name, it is
        // unchanged.
        let named = IdentityFile::open(disk.clone(), directory, Some("a")).unwrap();
        assert_eq!(named.get(), Identity { name: "a".into(), ..alone.clone() });
        assert_eq!(IdentityFile::open(disk.clone(), directory, Some(SINGLE_NAME)).unwrap().get(), alone);
        named.belong("one").unwrap();
        assert_eq!(IdentityFile::open(disk.clone(), directory, Some("a")).unwrap().get(), named.get());
        let refused = IdentityFile::open(disk, directory, Some("b")).err().unwrap().to_string();
        assert!(refused.contains("it is of the member \"a\", not of \"b\""), "{refused}");
    }

    #[test]
    fn a_damaged_identity_is_refused() {
        let identity = Identity { name: "a".into(), id: 17, cluster: "c".into() };
        let whole = text(&identity);
        assert_eq!(parse(&whole), Some(identity));
        for place in 0..whole.len() - 1 {
            let mut bytes = whole.clone().into_bytes();
            bytes[place] ^= 1;
            assert_eq!(String::from_utf8(bytes).ok().and_then(|text| parse(&text)), None, "{place}");
        }
    }
}
