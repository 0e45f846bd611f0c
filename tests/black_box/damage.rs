//! Data directories that changed after the server had ended.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::support::{CONFIG_MAPS, DataDir, config_map, config_map_path};

const SECTOR: usize = 512;
const EARLY: &str = "written-early-and-kept";

/// Returns the first offset of `text` in a file.
fn find(path: &Path, text: &[u8]) -> usize {
    let bytes = fs::read(path).expect("the log");
    let starts = (0..bytes.len()).filter(|at| bytes[*at] == text[0]);
    let found = starts.into_iter().find(|at| bytes[*at..].starts_with(text));
    found.unwrap_or_else(|| panic!("{} is not in the log", String::from_utf8_lossy(&text[..20])))
}

fn open(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).expect("the log")
}

fn flip_bit(path: &Path, offset: usize) {
    let (file, mut byte) = (open(path), [0]);
    file.read_exact_at(&mut byte, offset as u64).expect("a byte");
    file.write_all_at(&[byte[0] ^ 0x10], offset as u64).expect("a byte");
}

/// Returns the data directory of a server that was killed after it had written a small object and then a large one.
fn killed_directory(large: &str) -> DataDir {
    let directory = DataDir::new();
    let server = directory.start();
    let mut client = server.connect();
    client.post(CONFIG_MAPS, &config_map("early", EARLY)).expect(201);
    client.post(CONFIG_MAPS, &config_map("large", large)).expect(201);
    server.kill();
    directory
}

#[test]
fn flipped_bits_are_refused_and_nothing_is_changed() {
    let directory = killed_directory("large");
    let segment = directory.log_segment();
    let offset = find(&segment, EARLY.as_bytes());
    flip_bit(&segment, offset + 3);
    let damaged = fs::read(&segment).expect("the log");
    let refusal = directory.try_start().err().expect("a refusal");
    assert_eq!(refusal.code, Some(1));
    let named = segment.display().to_string();
    for part in [&*named, "is damaged at offset", "restore the data directory"] {
        assert!(refusal.messages.contains(part), "{part} is not in {}", refusal.messages);
    }
    assert!(fs::read(&segment).expect("the log") == damaged, "the damaged log was changed");

    flip_bit(&segment, offset + 3);
    let server = directory.start();
    let early = server.connect().get(&config_map_path("early")).expect(200);
    assert_eq!(early["data"]["value"], EARLY);
}

/// Returns the log's path, and the offset of the middle of the last write.
fn middle_of_last_write(directory: &DataDir, large: &str) -> (PathBuf, usize) {
    let segment = directory.log_segment();
    let middle = find(&segment, large.as_bytes()) + large.len() / 2;
    (segment, middle.next_multiple_of(SECTOR))
}

#[test]
fn an_incomplete_last_frame_is_cut_off() {
    let large = "torn-".repeat(20_000);
    let directory = killed_directory(&large);
    let (segment, middle) = middle_of_last_write(&directory, &large);
    let file = open(&segment);
    let length = file.metadata().expect("a size").len() as usize;
    file.write_all_at(&vec![0; length - middle], middle as u64).expect("zeros");

    // Earlier writes are present, and new writes are accepted.
    let server = directory.start();
    assert!(server.messages().contains("cutting off a frame that was never completed"), "{}", server.messages());
    let mut client = server.connect();
    assert_eq!(client.get(&config_map_path("early")).expect(200)["data"]["value"], EARLY);
    client.get(&config_map_path("large")).expect(404);
    client.post(CONFIG_MAPS, &config_map("large", "again")).expect(201);
    server.kill();

    let server = directory.start();
    let mut client = server.connect();
    assert_eq!(client.get(&config_map_path("early")).expect(200)["data"]["value"], EARLY);
    assert_eq!(client.get(&config_map_path("large")).expect(200)["data"]["value"], "again");
}

#[test]
fn a_log_whose_file_ends_early_is_refused() {
    let large = "torn-".repeat(20_000);
    let directory = killed_directory(&large);
    let (segment, middle) = middle_of_last_write(&directory, &large);
    open(&segment).set_len(middle as u64).expect("a shorter file");
    let refusal = directory.try_start().err().expect("a refusal");
    assert_eq!(refusal.code, Some(1));
    let named = format!("{} is damaged at offset {middle}", segment.display());
    assert!(refusal.messages.contains(&named), "{named} is not in {}", refusal.messages);
}
