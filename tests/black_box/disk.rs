//! A disk that fills up.

use std::fs::{self, File};
use std::io::Write as _;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{CONFIG_MAPS, DataDir, config_map, config_map_path};

/// Room for the segments of the log that must always be there, and one more.
const DISK_BYTES: u64 = 120 << 20;
const VALUE_BYTES: usize = 1 << 20;

/// Fsync that fails cannot be brought about from outside; the store's own tests have a disk for that.
#[test]
fn a_full_disk_refuses_writes_until_there_is_room() {
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
        assert!(kept.len() as u64 * VALUE_BYTES as u64 <= DISK_BYTES, "more was taken than the disk holds");
    };
    let status = refused.expect(507);
    assert_eq!(
        (&status["kind"], &status["status"], &status["code"]),
        (&"Status".into(), &"Failure".into(), &507.into())
    );
    assert_eq!(status["reason"], "InsufficientStorage");
    let message = status["message"].as_str().expect("a message");
    assert!(message.contains("room") || message.contains("space") || message.contains("full"), "{message}");

    // It still reads, and is what it was: what was acknowledged is there, what was refused is not.
    assert_eq!(administrator.get("/livez").status, 200);
    for name in &kept {
        let object = administrator.get(&config_map_path(name)).expect(200);
        assert_eq!(object["data"]["value"].as_str().map(str::len), Some(VALUE_BYTES));
    }
    administrator.get(&config_map_path(&format!("kept{}", kept.len()))).expect(404);

    drop(file);
    fs::remove_file(&filler).expect("room again");
    let deadline = Instant::now() + Duration::from_secs(30);
    while administrator.post(CONFIG_MAPS, &config_map("after", &value)).status != 201 {
        assert!(Instant::now() < deadline, "no write is taken though there is room");
        sleep(Duration::from_millis(100));
    }
    administrator.get(&config_map_path("after")).expect(200);
    assert_eq!(server.terminate().code(), Some(0));
}
