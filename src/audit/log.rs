//! The file of `--audit-log-path`, which is rotated by size, age and number.
//!
//! Names of full files are those of the reference: `audit.log` becomes `audit-TIME.log`, and `audit-TIME.log.gz` once
//! it is compressed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use flotilla_proto::time::Timestamp;

use crate::tasks;
use crate::wall_clock;

/// The rules by which full files are removed and compressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rotation {
    /// Size of a full file in bytes; 0 if files never become full.
    pub bytes: u64,
    /// The number of full files that are kept; 0 for all.
    pub files: usize,
    /// The number of days for which full files are kept; 0 for ever.
    pub days: u64,
    /// Whether full files are compressed.
    pub compress: bool,
}

/// The destination of lines.
#[derive(Debug)]
enum Out {
    Standard,
    /// `None` after a failure: the next line opens the file again.
    File(Option<File>, u64),
}

/// The log.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    rotation: Rotation,
    out: Out,
    /// Wakes the thread that removes and compresses full files.
    full: Option<Sender<()>>,
}

impl LogFile {
    /// Opens the log. `-` is standard output.
    ///
    /// # Errors
    /// The file or its directory cannot be created.
    pub fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self { path: path.to_owned(), rotation, out: Out::Standard, full: None });
        }
        if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        let (full, told) = channel();
        let mut log = Self { path: path.to_owned(), rotation, out: Out::File(None, 0), full: Some(full) };
        log.open_again()?;
        let upkeep = Upkeep { path: path.to_owned(), rotation };
        tasks::thread("audit-files", None, move || upkeep.run(&told))?;
        Ok(log)
    }

    fn open_again(&mut self) -> io::Result<()> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.path)?;
        let bytes = file.metadata()?.len();
        self.out = Out::File(Some(file), bytes);
        Ok(())
    }

    /// Appends whole lines.
    ///
    /// # Errors
    /// The disk is full, or the file cannot be opened or renamed.
    pub fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let adds = lines.len() as u64;
        match &self.out {
            Out::Standard => return io::stdout().lock().write_all(lines),
            Out::File(None, _) => self.open_again()?,
            Out::File(Some(_), _) => {}
        }
        if let Out::File(_, bytes) = self.out
            && bytes > 0
            && self.rotation.bytes > 0
            && bytes + adds > self.rotation.bytes
        {
            self.rotate()?;
        }
        let Out::File(Some(file), bytes) = &mut self.out else { return Ok(()) };
        let before = *bytes;
        if let Err(error) = file.write_all(lines) {
            // A part of a line would corrupt the next line.
            let _ = file.set_len(before);
            self.out = Out::File(None, 0);
            return Err(error);
        }
        *bytes += adds;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.out = Out::File(None, 0);
        let now = wall_clock::timestamp();
        fs::rename(&self.path, full_name(&self.path, now))?;
        self.open_again()?;
        if let Some(full) = &self.full {
            let _ = full.send(()); // if the thread has ended, full files stay
        }
        Ok(())
    }
}

/// Returns the name of the file that became full at this time.
fn full_name(path: &Path, at: Timestamp) -> PathBuf {
    let (stem, extension) = parts(path);
    let text = at.to_string().replace(':', "-");
    let time = format!("{}.{:03}", text.trim_end_matches('Z'), at.nanos / 1_000_000);
    path.with_file_name(format!("{stem}-{time}{extension}"))
}

/// Returns the name of a file without its extension, and the extension with its dot.
fn parts(path: &Path) -> (String, String) {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match name.rfind('.') {
        Some(dot) => (name[..dot].to_owned(), name[dot..].to_owned()),
        None => (name, String::new()),
    }
}

/// Removes and compresses full files, on a thread of its own.
struct Upkeep {
    path: PathBuf,
    rotation: Rotation,
}

impl Upkeep {
    fn run(&self, told: &Receiver<()>) {
        loop {
            if let Err(error) = self.tidy() {
                tracing::warn!(%error, path = %self.path.display(), "full files of the audit log cannot be removed or compressed");
            }
            if told.recv().is_err() {
                return;
            }
        }
    }

    /// Returns the full files, the newest first.
    fn full(&self) -> io::Result<Vec<PathBuf>> {
        let (stem, extension) = parts(&self.path);
        let prefix = format!("{stem}-");
        let dir = self.path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut all = Vec::new();
        for entry in fs::read_dir(dir)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let plain = name.strip_suffix(".gz").unwrap_or(&name);
            let time = plain.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(&extension));
            if let Some(time) = time.filter(|time| is_time(time)) {
                all.push((time.to_owned(), dir.join(&name)));
            }
        }
        all.sort_unstable_by(|one, other| other.cmp(one));
        Ok(all.into_iter().map(|(_, path)| path).collect())
    }

    fn tidy(&self) -> io::Result<()> {
        let Rotation { files, days, compress, .. } = self.rotation;
        let oldest = (days > 0).then(|| {
            let now = wall_clock::now();
            let age = Duration::from_secs(days.saturating_mul(24 * 3_600));
            let at = now.checked_sub(age).and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
            Timestamp { seconds: at.as_secs().cast_signed(), nanos: at.subsec_nanos() }
        });
        let oldest = oldest.map(|at| full_name(&self.path, at));
        for (at, path) in self.full()?.into_iter().enumerate() {
            let is_old = oldest.as_ref().is_some_and(|oldest| path < *oldest);
            if is_old || (files > 0 && at >= files) {
                fs::remove_file(&path)?;
            } else if compress && path.extension().is_none_or(|extension| extension != "gz") {
                compress_file(&path)?;
            }
        }
        Ok(())
    }
}

/// Returns whether a text has the form of the time in a full file's name.
fn is_time(text: &str) -> bool {
    text.len() == "2006-01-02T15-04-05.000".len()
        && text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'T' | b'.'))
}

fn compress_file(path: &Path) -> io::Result<()> {
    let mut to = path.as_os_str().to_owned();
    to.push(".gz");
    let file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&to)?;
    let mut encoder = GzEncoder::new(file, Compression::default());
    io::copy(&mut File::open(path)?, &mut encoder)?;
    encoder.finish()?.sync_all()?;
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn full_files_are_renamed_and_counted() {
        let dir = Scratch::new();
        let path = dir.join("logs").join("audit.log");
        let rotation = Rotation { bytes: 10, files: 2, days: 1, compress: false };
        drop(LogFile::open(&path, rotation).unwrap());
        // Without the upkeep thread, which would tidy at the same time as this test.
        let mut log = LogFile { path: path.clone(), rotation, out: Out::File(None, 0), full: None };
        log.append(b"0123456789\n").unwrap();
        log.append(b"next\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"next\n");
        let upkeep = Upkeep { path: path.clone(), rotation };
        assert_eq!(upkeep.full().unwrap().len(), 1);
        for old in ["audit-2001-01-01T00-00-00.000.log", "audit-x.log", "other.log"] {
            fs::write(path.with_file_name(old), b"").unwrap();
        }
        upkeep.tidy().unwrap();
        assert!(!path.with_file_name("audit-2001-01-01T00-00-00.000.log").exists(), "it is older than a day");
        assert!(path.with_file_name("audit-x.log").exists() && path.with_file_name("other.log").exists());
        let full = upkeep.full().unwrap();
        Upkeep { path, rotation: Rotation { compress: true, ..rotation } }.tidy().unwrap();
        assert!(!full[0].exists() && full[0].with_extension("log.gz").exists());
    }
}
