//! How fast snapshots are written. What they hold is tested by stores that are opened again.

use std::time::Duration;

use super::Pace;
use crate::limits::{SNAPSHOT_WRITE_BYTES, SNAPSHOT_WRITE_INTERVAL, SNAPSHOT_WRITE_TIMEOUT};

#[test]
fn a_gentle_snapshot_leaves_the_disk_to_others_and_comes_to_an_end() {
    let (none, quick) = (Duration::ZERO, Duration::from_millis(1));
    assert_eq!(Pace::Fast.pause(none, quick), none);
    assert_eq!(Pace::Gentle.pause(none, quick), SNAPSHOT_WRITE_INTERVAL - quick);
    let slow = 2 * SNAPSHOT_WRITE_INTERVAL;
    assert_eq!(Pace::Gentle.pause(none, slow), slow, "as long as the disk was used");
    let (mut elapsed, mut bytes) = (none, 0);
    while bytes < 64 << 30 {
        elapsed += quick + Pace::Gentle.pause(elapsed, quick);
        bytes += SNAPSHOT_WRITE_BYTES;
    }
    assert!(elapsed < SNAPSHOT_WRITE_TIMEOUT, "{elapsed:?}");
}
