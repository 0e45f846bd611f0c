//! The command `flotilla export`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use flotilla_cluster::{BackupReadError, BackupReader, Object, TableId};
use flotilla_etcd_snapshot::{Ending, KeyValue, Lease, SnapshotWriter};
use flotilla_proto::protobuf::{self, Transcoder};

use super::key_meaning::{KeyMeanings, folder, is_json};
use super::spool::Spool;
use super::yaml_files::YamlFiles;
use crate::backup::{BackupCommandError, Source};
use crate::limits;
use crate::tables::stored_text;
use crate::terminal::report;

/// The text before the digits of a revision.
const REVISION_NAME: &[u8] = b"\"resourceVersion\":\"";

/// Write the objects of a cluster for use in another one.
#[derive(Debug, Args)]
pub struct Export {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    output: ExportOutput,
    /// Prefix of all keys in etcd, as kube-apiserver's flag of this name states it.
    #[arg(long, value_name = "PREFIX", default_value = "/registry")]
    etcd_prefix: String,
}

/// The output of an export.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct ExportOutput {
    /// etcd snapshot to write. `etcdutl snapshot restore` turns it into an etcd data directory.
    #[arg(long, value_name = "FILE")]
    to_etcd_snapshot: Option<PathBuf>,
    /// Directory to create, with a YAML file for the objects of each resource and namespace.
    #[arg(long, value_name = "DIR")]
    to_yaml: Option<PathBuf>,
}

/// The reason why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The objects cannot be fetched.
    #[error(transparent)]
    Source(#[from] BackupCommandError),
    /// The fetched objects cannot be read.
    #[error("the fetched objects cannot be read")]
    Backup(#[from] BackupReadError),
    /// The snapshot cannot be written.
    #[error(transparent)]
    Snapshot(#[from] flotilla_etcd_snapshot::Error),
    /// A file cannot be written.
    #[error("cannot write {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A temporary file cannot be written.
    #[error("cannot write a temporary file beside the snapshot")]
    Beside(#[from] io::Error),
    /// An object cannot be encoded.
    #[error("{table} {key} cannot be exported: {why}")]
    Object {
        /// Its table.
        table: TableId,
        /// Its key.
        key: String,
        /// The reason.
        why: String,
    },
}

impl Export {
    /// Exports, and prints a summary of the written files on standard output. On failure, the target is left as it was
    /// before.
    ///
    /// # Errors
    /// See [`ExportError`].
    pub fn run(&self) -> Result<(), ExportError> {
        let path = self.output.to_etcd_snapshot.as_ref().or(self.output.to_yaml.as_ref());
        let Some(path) = path else { return Ok(()) }; // clap demands one of the two
        let backup = beside(path, ".backup");
        let saved = self.source.save(&backup, &beside(path, ".data"))?;
        let written = self.write(path, &backup, saved.1.last.max(saved.0.revision).get());
        let _ = fs::remove_file(&backup); // no longer needed
        report(written?);
        Ok(())
    }

    fn write(&self, path: &Path, backup: &Path, revision: u64) -> Result<String, ExportError> {
        let unfinished = beside(path, ".tmp");
        let failed = |source| ExportError::File { path: path.to_owned(), source };
        let exporting = Exporting { meanings: KeyMeanings::builtin(), transcoder: Transcoder::default() };
        let is_yaml = self.output.to_yaml.is_some();
        let written = match is_yaml {
            true => exporting.yaml(&unfinished, backup),
            false => exporting.etcd(&unfinished, backup, &self.etcd_prefix, revision),
        };
        let report = written.and_then(|report| fs::rename(&unfinished, path).map(|()| report).map_err(failed));
        let report = report.inspect_err(|_| {
            let _ = if is_yaml { fs::remove_dir_all(&unfinished) } else { fs::remove_file(&unfinished) };
        })?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(parent).and_then(|parent| parent.sync_all()).map_err(failed)?;
        Ok(format!("{}: {report}", path.display()))
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.to_owned().into_os_string();
    path.push(suffix);
    path.into()
}

struct Exporting {
    meanings: KeyMeanings,
    transcoder: Transcoder,
}

impl Exporting {
    fn etcd(mut self, path: &Path, backup: &Path, prefix: &str, revision: u64) -> Result<String, ExportError> {
        let (prefix, mut events) = (prefix.trim_matches('/'), 0);
        let mut spool = Spool::new(&beside(path, ".spool"))?;
        let skipped = self.each(backup, |exporting, table, object| {
            let Some((folder, value)) = exporting.etcd_value(table, object)? else { return Ok(false) };
            let lease = if folder == "events" { events / limits::MOVING_LEASE_KEYS + 1 } else { 0 };
            events += u64::from(lease > 0);
            let key = format!("/{prefix}/{folder}/{}", object.key());
            spool.add(object.revision().get(), lease.cast_signed(), &key, &value)?;
            Ok(true)
        })?;
        let _ = fs::remove_file(path); // of an export that was killed
        let opened = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
        let file = opened.map_err(|source| ExportError::File { path: path.to_owned(), source })?;
        let (mut writer, mut count) = (SnapshotWriter::new(file)?, 0_u64);
        spool.take::<ExportError>(|revision, lease, key, value| {
            let revision = revision.cast_signed();
            count += 1;
            let (create_revision, mod_revision, version) = (revision, revision, 1);
            writer.put(&KeyValue { key, create_revision, mod_revision, version, value, lease })?;
            Ok(())
        })?;
        let leases = 1..=events.div_ceil(limits::MOVING_LEASE_KEYS);
        let leases =
            leases.map(|id| Lease { id: id.cast_signed(), ttl_seconds: limits::MOVING_EVENT_SECONDS }).collect();
        let bytes = writer.finish(&Ending { leases, revision: revision.cast_signed() })?;
        Ok(format!("{count} objects as of revision {revision}, {bytes} bytes{}", shown(&skipped)))
    }

    fn yaml(mut self, path: &Path, backup: &Path) -> Result<String, ExportError> {
        fs::create_dir(path).map_err(|source| ExportError::File { path: path.to_owned(), source })?;
        let mut files = YamlFiles::new(path);
        let skipped = self.each(backup, |exporting, table, object| {
            if !exporting.is_object(table) {
                return Ok(false);
            }
            let text = without_revision(table, object)?;
            files.add(table, object.key(), &text)?;
            Ok(true)
        })?;
        let (count, files) = files.finish()?;
        Ok(format!("{count} objects in {files} files{}", shown(&skipped)))
    }

    /// Calls `see`, which returns whether it exported the object, for every object of a backup. Returns the tables that
    /// were skipped, with their numbers of objects.
    fn each(
        &mut self,
        backup: &Path,
        mut see: impl FnMut(&mut Self, &TableId, &Object) -> Result<bool, ExportError>,
    ) -> Result<Vec<(TableId, u64)>, ExportError> {
        let mut reader = BackupReader::open(BufReader::new(File::open(backup)?))?;
        let mut skipped: Vec<(TableId, u64)> = Vec::new();
        while let Some((table, objects)) = reader.read()? {
            for object in &objects {
                if see(self, &table, object)? {
                    continue;
                }
                match skipped.iter_mut().find(|(of, _)| *of == table) {
                    Some((_, count)) => *count += 1,
                    None => skipped.push((table.clone(), 1)),
                }
            }
        }
        Ok(skipped)
    }

    /// Returns whether a table has API objects: those of a built-in resource, or those of a custom resource, whose
    /// group has a dot.
    fn is_object(&self, table: &TableId) -> bool {
        let is_custom = table.as_str().split_once('/').is_some_and(|(group, _)| group.contains('.'));
        self.meanings.of_table(table).is_some() || is_custom
    }

    /// Returns the folder of an object in etcd and its value. `None` if the table has no API objects.
    fn etcd_value(&mut self, table: &TableId, object: &Object) -> Result<Option<(String, Vec<u8>)>, ExportError> {
        if !self.is_object(table) {
            return Ok(None);
        }
        let text = without_revision(table, object)?;
        let Some(served) = self.meanings.of_table(table).filter(|served| !is_json(served)) else {
            return Ok(Some((table.as_str().to_owned(), text)));
        };
        let (mut message, mut value) = (Vec::new(), Vec::new());
        let transcoded = self.transcoder.transcode(&served.stored.of, &text, &mut message);
        transcoded.map_err(|error| refused(table, object, error.to_string()))?;
        protobuf::write_object(&served.stored.api_version(), &served.stored.name, &message, &mut value);
        Ok(Some((folder(served), value)))
    }
}

fn refused(table: &TableId, object: &Object, why: String) -> ExportError {
    ExportError::Object { table: table.clone(), key: object.key().to_string(), why }
}

/// Returns the text of an object without its revision, which etcd stores beside it.
fn without_revision(table: &TableId, object: &Object) -> Result<Vec<u8>, ExportError> {
    let text = stored_text(object).map_err(|error| refused(table, object, error.message))?;
    let at = object.layout().revision_at as usize;
    let digits = flotilla_cluster::Revision::DIGITS;
    let from = at.checked_sub(REVISION_NAME.len()).filter(|from| text[*from..].starts_with(REVISION_NAME));
    let from = from.ok_or_else(|| refused(table, object, "its revision is not where it must be".to_owned()))?;
    let (mut from, mut to) = (from, at + digits + 1);
    // A comma after or before the revision goes too.
    if text.get(to) == Some(&b',') {
        to += 1;
    } else if text[..from].ends_with(b",") {
        from -= 1;
    }
    Ok([&text[..from], &text[to..]].concat())
}

fn shown(skipped: &[(TableId, u64)]) -> String {
    let each =
        skipped.iter().map(|(table, count)| format!("\nleft out: {count} of {table}, which only Flotilla can use"));
    each.collect()
}
