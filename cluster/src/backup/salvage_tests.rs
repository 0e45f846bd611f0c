//! Backups of the directory of one member, which may lack the end of its log.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::backup_tests::{options, put, write};
use super::{SalvageError, salvage};
use crate::{Expectation, Store, TableId};

#[tokio::test]
async fn salvage_refuses_a_copy_at_an_unsuitable_path() {
    let scratch = tempfile::tempdir().unwrap();
    let (directory, copy) = (scratch.path().join("a"), scratch.path().join("copy"));
    Store::open(options(&directory)).await.unwrap().shutdown().await;
    let inside = salvage(&directory, &directory.join("copy"), None, Arc::new(|_| {})).await;
    assert!(matches!(inside, Err(SalvageError::Location { .. })));
    std::fs::create_dir(&copy).unwrap();
    let taken = salvage(&directory, &copy, None, Arc::new(|_| {})).await;
    assert!(matches!(taken, Err(SalvageError::Location { .. })));
    assert!(std::fs::read_dir(&copy).unwrap().next().is_none(), "what was there stays as it was");
}

/// Salvages a directory. Returns the lines of the log, and the store.
async fn salvage_report(directory: &Path, copy: &Path) -> (String, Store) {
    let report = Arc::<Mutex<Vec<u8>>>::default();
    let writer = report.clone();
    let writer = move || Lines(writer.clone());
    let log = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_ansi(false).with_writer(writer);
    let _told = tracing::subscriber::set_default(log.finish());
    let store = salvage(directory, copy, None, Arc::new(|_| {})).await.unwrap();
    let report = String::from_utf8(report.lock().clone()).unwrap();
    (report, store)
}

struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_salvage_reports_that_the_end_of_the_log_is_missing() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("a");
    let store = Store::open(options(&directory)).await.unwrap();
    for number in 0..30 {
        write(&store, put("configmaps", &format!("ns/{number}"), Expectation::Absent, 100 << 10)).await;
    }
    store.shutdown().await;
    let (report, whole) = salvage_report(&directory, &scratch.path().join("whole")).await;
    assert_eq!(report, "");
    let has = |store: &Store, name| store.table(&TableId::new("configmaps")).get(name).is_some();
    assert!(has(&whole, "ns/0") && has(&whole, "ns/29"));
    whole.shutdown().await;

    let segments = std::fs::read_dir(directory.join("wal")).unwrap().map(|entry| entry.unwrap().path());
    let newest = segments.filter(|path| path.extension().is_some_and(|extension| extension == "wal")).max().unwrap();
    let whole = std::fs::read(&newest).unwrap();
    let (header, frames) = whole.split_at(64);
    let blank = [header, &vec![0; frames.len()]].concat();
    for (loss, newest_content) in [("without frames", Some(blank)), ("without segment", None)] {
        match newest_content {
            Some(content) => std::fs::write(&newest, content).unwrap(),
            None => std::fs::remove_file(&newest).unwrap(),
        }
        let (report, part) = salvage_report(&directory, &scratch.path().join(loss)).await;
        assert!(report.contains("the end of the write-ahead log is missing"), "{loss}: {report}");
        assert!(report.contains(&newest.display().to_string()), "{loss}: {report}");
        assert!(has(&part, "ns/0") && !has(&part, "ns/29"), "{loss}");
        part.shutdown().await;
    }
}
