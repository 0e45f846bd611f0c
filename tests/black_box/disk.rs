//! Disks that fill up, and disks that fail to make data durable.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{CONFIG_MAPS, DataDir, config_map, config_map_path};

/// Replaces functions of the C library. They fail once the file that FAIL_FSYNC names exists.
const FAILING_FSYNC: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static int or_fail(long number, int file) {
    if (access(getenv("FAIL_FSYNC"), F_OK) != 0) return syscall(number, file);
    errno = EIO;
    return -1;
}
int fsync(int file) { return or_fail(SYS_fsync, file); }
int fdatasync(int file) { return or_fail(SYS_fdatasync, file); }
"#;

/// Space for the segments that the log always keeps, and one more.
const DISK_BYTES: u64 = 120 << 20;
const VALUE_BYTES: usize = 1 << 20;

#[test]
fn a_full_disk_refuses_writes_until_it_has_space() {
    let directory = DataDir::new();
    let Some(server) = directory.start_on_small_disk(DISK_BYTES) else { return };
    let mut administrator = server.connect();
    let filler = server.data().join("filler");
    let mut file = File::create(&filler).expect("a file");
    while file.write_all(&[1; 65_536]).is_ok() {}

    let value = "x".repeat(VALUE_BYTES);
    let mut kept = Vec::new();
    let refused = loop {
        let name = format!("kept{}", kept.len());
        let answer = administrator.post(CONFIG_MAPS, &config_map(&name, &value));
        if answer.status != 201 {
            break answer;
        }
        kept.push(name);
        assert!(kept.len() as u64 * VALUE_BYTES as u64 <= DISK_BYTES, "more was acknowledged than the disk holds");
    };
    let status = refused.expect(507);
    assert_eq!(
        (&status["kind"], &status["status"], &status["code"]),
        (&"Status".into(), &"Failure".into(), &507.into())
    );
    assert_eq!(status["reason"], "InsufficientStorage");
    let message = status["message"].as_str().expect("a message");
    assert!(message.contains("room") || message.contains("space") || message.contains("full"), "{message}");

    // The server still serves reads: acknowledged objects are present, refused ones are not.
    assert_eq!(administrator.get("/livez").status, 200);
    for name in &kept {
        let object = administrator.get(&config_map_path(name)).expect(200);
        assert_eq!(object["data"]["value"].as_str().map(str::len), Some(VALUE_BYTES));
    }
    administrator.get(&config_map_path(&format!("kept{}", kept.len()))).expect(404);

    drop(file);
    fs::remove_file(&filler).expect("room again");
    let deadline = Instant::now() + Duration::from_secs(120);
    while administrator.post(CONFIG_MAPS, &config_map("after", &value)).status != 201 {
        assert!(Instant::now() < deadline, "writes are refused although the disk has space");
        sleep(Duration::from_millis(100));
    }
    administrator.get(&config_map_path("after")).expect(200);
    assert_eq!(server.terminate().code(), Some(0));
}

/// Compiles [`FAILING_FSYNC`].
fn failing_fsync(folder: &Path) -> PathBuf {
    let (source, library) = (folder.join("fsync.c"), folder.join("fsync.so"));
    fs::write(&source, FAILING_FSYNC).expect("a file");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(compiled.expect("the C compiler that the build takes").success());
    library
}

#[test]
fn a_failed_fsync_ends_the_server_and_nothing_acknowledged_is_lost() {
    let directory = DataDir::new();
    let folder = directory.path().with_file_name("fsync");
    fs::create_dir_all(&folder).expect("a directory");
    let (library, failing) = (failing_fsync(&folder), folder.join("fails"));
    let [library_path, failing_path] = [&library, &failing].map(|path| path.to_str().expect("a path"));
    let started = directory.try_start_in(&[("LD_PRELOAD", library_path), ("FAIL_FSYNC", failing_path)]);
    let server = started.expect("a server");
    let mut client = server.connect();
    for number in 0..20 {
        client.post(CONFIG_MAPS, &config_map(&format!("kept-{number}"), "1")).expect(201);
    }
    File::create(&failing).expect("a file");
    let object = config_map("unknown", "1").to_string();
    let answer = client.call("POST", CONFIG_MAPS, &[("Content-Type", "application/json")], object.as_bytes());
    assert!(answer.as_ref().map_or(true, |answer| answer.status >= 500), "{answer:?}");
    let messages = server.messages();
    assert_eq!(server.wait().code(), Some(70), "{messages}");

    let server = directory.start();
    let mut client = server.connect();
    for number in 0..20 {
        client.get(&config_map_path(&format!("kept-{number}"))).expect(200);
    }
    client.post(CONFIG_MAPS, &config_map("after", "1")).expect(201);
}
