//! Writes objects as YAML, in one file for each resource and namespace.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flotilla_cluster::{Key, TableId};
use flotilla_proto::{json, yaml};

/// Writes the files `GROUP/RESOURCE/NAMESPACE.yaml`, and `GROUP/RESOURCE.yaml` for cluster-scoped resources.
#[derive(Debug)]
pub(super) struct YamlFiles {
    directory: PathBuf,
    known: BTreeSet<PathBuf>,
    open: Option<(PathBuf, BufWriter<File>)>,
    count: u64,
}

impl YamlFiles {
    /// Writes the files into an empty directory.
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), known: BTreeSet::new(), open: None, count: 0 }
    }

    /// Adds an object, given as JSON.
    pub(super) fn add(&mut self, table: &TableId, key: &Key, text: &[u8]) -> io::Result<()> {
        let value = json::parse(text).map_err(io::Error::other)?;
        let mut document = b"---\n".to_vec();
        yaml::write(&value, &mut document);
        self.count += 1;
        self.file(table, key)?.write_all(&document)
    }

    /// Returns the file of an object. A file stays open until an object belongs to another one, since objects of a
    /// namespace usually follow each other.
    fn file(&mut self, table: &TableId, key: &Key) -> io::Result<&mut BufWriter<File>> {
        let (group, resource) = table.as_str().split_once('/').unwrap_or(("core", table.as_str()));
        let folder = self.directory.join(group);
        let path = match key.namespace() {
            Some(namespace) => folder.join(resource).join(format!("{namespace}.yaml")),
            None => folder.join(format!("{resource}.yaml")),
        };
        if self.open.as_ref().is_none_or(|(open, _)| *open != path) {
            self.close()?;
            if self.known.insert(path.clone()) {
                fs::create_dir_all(path.parent().unwrap_or(&folder))?;
            }
            // The file may contain Secrets.
            let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
            self.open = Some((path, BufWriter::new(file)));
        }
        let open = self.open.as_mut().map(|(_, file)| file);
        open.ok_or_else(|| io::Error::other("the file was closed"))
    }

    fn close(&mut self) -> io::Result<()> {
        if let Some((_, file)) = self.open.take() {
            file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        }
        Ok(())
    }

    /// Closes the last file. Returns the number of objects and the number of files.
    pub(super) fn finish(mut self) -> io::Result<(u64, usize)> {
        self.close()?;
        Ok((self.count, self.known.len()))
    }
}
