//! Certificates and keys in files, which may be replaced while the server runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;
use parking_lot::Mutex;

use super::{Identity, Trust};

/// The files with this server's certificate for other servers, and with the authorities that it trusts.
#[derive(Debug, Default)]
pub struct CredentialFiles {
    identity: Option<(Reread, Reread)>,
    authority: Option<Reread>,
}

impl CredentialFiles {
    /// Takes the files of a certificate and its key, and the file of the trusted authorities.
    pub fn new(identity: Option<(&Path, &Path)>, authority: Option<&Path>) -> Self {
        let identity = identity.map(|(certificate, key)| (Reread::new(certificate), Reread::new(key)));
        Self { identity, authority: authority.map(Reread::new) }
    }

    /// Returns the present certificate and key. `None` if no files were given.
    pub fn identity(&self) -> Option<Identity> {
        let (certificates, key) = self.identity.as_ref()?;
        Some(Identity { certificates: certificates.get(), key: key.get() })
    }

    /// Returns the trusted authorities. Without a file of them, every peer is trusted, as in the reference.
    pub fn trust(&self) -> Trust {
        self.authority.as_ref().map_or(Trust::Anybody, |authority| Trust::Bundle(authority.get()))
    }
}

/// A file that is read again after it changed.
#[derive(Debug)]
pub struct Reread {
    path: PathBuf,
    kept: Mutex<(Option<SystemTime>, Bytes)>,
}

impl Reread {
    /// Takes the path of a file, without reading it.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), kept: Mutex::default() }
    }

    /// Returns the content of the file. If it cannot be read, returns the content that was read last.
    pub fn get(&self) -> Bytes {
        let changed = fs::metadata(&self.path).and_then(|metadata| metadata.modified()).ok();
        let mut kept = self.kept.lock();
        if changed.is_some() && kept.0 != changed {
            match fs::read(&self.path) {
                Ok(bytes) => *kept = (changed, bytes.into()),
                Err(error) => tracing::warn!(path = %self.path.display(), %error, "cannot reread a changed file"),
            }
        }
        kept.1.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_files_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pem");
        let files = CredentialFiles::new(None, Some(&path));
        fs::write(&path, "1").unwrap();
        assert_eq!(files.trust(), Trust::Bundle("1".into()));
        fs::write(&path, "2").unwrap();
        let later = crate::wall_clock::now() + std::time::Duration::from_secs(5);
        fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
        assert_eq!(files.trust(), Trust::Bundle("2".into()));
        fs::remove_file(&path).unwrap();
        assert_eq!(files.trust(), Trust::Bundle("2".into()));
        assert_eq!(CredentialFiles::default().trust(), Trust::Anybody);
    }
}
