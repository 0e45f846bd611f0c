//! Ports that belong to one member, even while it is restarted.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Mutex;

use rand::Rng as _;

/// The range of ports. It lies below the range of outgoing connections, so that no such connection takes the port of a
/// stopped member.
const PORTS: std::ops::Range<u16> = 17_600..29_000;
/// The folder of temporary files in which test programs lock a file for each port that they use.
const FOLDER: &str = "flotilla-ports";
/// How many ports are tried at most for each port that a test needs.
const TRIES_MAX: usize = 10_000;

/// Ports that tests of this process use, with the locked files. Other tests, and test programs that run at the same
/// time, must not bind them, not even to try.
static GIVEN: Mutex<BTreeMap<u16, File>> = Mutex::new(BTreeMap::new());

/// Returns addresses that nothing listens on, and that no other test gets until this process ends.
pub fn free(count: usize) -> Vec<SocketAddr> {
    let mut given = GIVEN.lock().expect("no test fails while it looks for ports");
    let folder = std::env::temp_dir().join(FOLDER);
    fs::create_dir_all(&folder).expect("a folder for locks");
    let mut found: Vec<SocketAddr> = Vec::new();
    for _ in 0..count * TRIES_MAX {
        let port = rand::rng().random_range(PORTS);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if !given.contains_key(&port)
            && let Some(lock) = lock(&folder, port)
            && TcpListener::bind(address).is_ok()
        {
            given.insert(port, lock);
            found.push(address);
            if found.len() == count {
                return found;
            }
        }
    }
    panic!("no ports are free, or their files in {} cannot be locked", folder.display());
}

/// Locks the file of a port until this process ends. Returns `None` if another process has locked it.
fn lock(folder: &Path, port: u16) -> Option<File> {
    let file = File::options().create(true).append(true).open(folder.join(port.to_string())).ok()?;
    file.try_lock().ok()?;
    Some(file)
}
