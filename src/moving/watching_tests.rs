use std::cell::RefCell;
use std::time::Instant;

use super::*;

fn watching(changes: Sender, pause: Duration) -> Watch {
    Watch { of: Arc::new(SourceResource::of_config_maps()), version: "5".to_owned(), changes, pause }
}

fn gone() -> ClientError {
    ClientError::Refused { code: 410, message: String::new(), unknown: String::new() }
}

fn event(of: &str, version: &str, text: &str) -> String {
    let metadata = format!(r#"{{"name":"a","namespace":"b","resourceVersion":"{version}"}}"#);
    format!(r#"{{"type":"{of}","object":{{"metadata":{metadata},"data":{{"a":"{text}"}}}}}}"#) + "\n"
}

/// Answers the requests in order, and then states that the version is gone. Returns the requested paths.
fn run(watch: Watch, answers: &[String]) -> (Vec<String>, Result<(), ReceiverDropped>) {
    let asked = RefCell::new(Vec::new());
    let result = watch.run(|path| {
        let (_, version) = path.rsplit_once('=').unwrap();
        asked.borrow_mut().push(version.to_owned());
        answers.get(asked.borrow().len() - 1).map(|answer| io::Cursor::new(answer.clone())).ok_or_else(gone)
    });
    (asked.into_inner(), result)
}

#[test]
fn a_watch_resumes_from_its_last_version_after_a_pause() {
    let (sender, receiver) = waiting();
    let pause = Duration::from_millis(30);
    let began = Instant::now();
    let answers = [
        event("ADDED", "6", "x") + &event("BOOKMARK", "9", ""),
        String::new(),
        event("DELETED", "10", "") + &event("ADDED", "11", "x")[..20],
        event("ADDED", "", "x"),
        r#"{"type":"ERROR","object":{"code":500}}"#.to_owned(),
    ];
    let (asked, result) = run(watching(sender, pause), &answers);
    assert!(result.is_ok());
    assert_eq!(asked, ["5", "9", "9", "10", "10", "10"]);
    assert!(began.elapsed() >= 5 * pause);
    let shown: Vec<WatchEvent> = receiver.iter().map(|change| change.shown).collect();
    assert!(
        matches!(&shown[..], [WatchEvent::Put(_), WatchEvent::Reached(to), WatchEvent::Deleted(_), WatchEvent::Lost] if to == "9"),
        "{shown:?}"
    );
}

#[test]
fn a_watch_is_lost_when_its_version_is_gone_or_an_event_is_too_large() {
    for answer in [
        r#"{"type":"ERROR","object":{"code":410}}"#.to_owned(),
        event("ADDED", "6", &"x".repeat(limits::MOVING_CHANGE_BYTES)),
    ] {
        let (sender, receiver) = waiting();
        let (asked, result) = run(watching(sender, Duration::ZERO), &[answer]);
        assert_eq!((asked.len(), result.is_ok()), (1, true));
        let shown: Vec<WatchEvent> = receiver.iter().map(|change| change.shown).collect();
        assert!(matches!(shown[..], [WatchEvent::Lost]));
    }
}

#[test]
fn the_bytes_of_waiting_changes_are_bounded() {
    let (sender, receiver) = waiting();
    let part = limits::MOVING_CHANGES_BYTES / 4;
    let answers = [(0..7).map(|at| event("ADDED", &(10 + at).to_string(), &"x".repeat(part))).collect()];
    let room = Arc::clone(&sender.room);
    let reading = std::thread::spawn(move || run(watching(sender, Duration::ZERO), &answers).1.is_ok());
    let mut count = 0;
    while let Ok(first) = receiver.recv() {
        let mut waited: Vec<WatchedChange> = receiver.try_iter().collect();
        waited.push(first);
        let bytes: usize = waited.iter().map(|change| change.held.bytes).sum();
        assert!(*room.left.lock() <= limits::MOVING_CHANGES_BYTES - bytes);
        assert!(bytes <= limits::MOVING_CHANGES_BYTES && waited.len() <= 4, "three events, and `Lost`");
        count += waited.len();
    }
    assert_eq!((count, *room.left.lock()), (8, limits::MOVING_CHANGES_BYTES));
    assert!(reading.join().unwrap());
}

#[test]
fn a_watch_that_waits_for_room_ends_when_the_receiver_is_dropped() {
    let (sender, receiver) = waiting();
    let part = limits::MOVING_CHANGES_BYTES / 2;
    let answers = [(0..7).map(|at| event("ADDED", &(10 + at).to_string(), &"x".repeat(part))).collect()];
    let reading = std::thread::spawn(move || run(watching(sender, Duration::ZERO), &answers).1.is_err());
    assert!(receiver.recv().is_ok());
    drop(receiver);
    assert!(reading.join().unwrap());
}
