//! The server stops without failing requests.

use std::time::{Duration, Instant};

use crate::support::{CONFIG_MAPS, DataDir, config_map, config_map_path};

/// Lets a stopping server wait much longer than [`END_MAX`] for its open requests.
pub const GRACE: [&str; 2] = ["--shutdown-grace-seconds", "600"];
/// How long the end of a server with [`GRACE`] may take if nothing delays it, even on a busy machine.
pub const END_MAX: Duration = Duration::from_secs(60);
/// How long a server that will stop still serves, in seconds: long enough for a few requests on a busy machine.
const DELAY_SECONDS: u64 = 30;

/// Splits a request in the middle of its body.
fn halves(name: &str) -> (String, String) {
    let body = config_map(name, "1").to_string();
    let head = format!(
        "POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let (first, second) = body.split_at(body.len() / 2);
    (head + first, second.to_owned())
}

#[test]
fn watches_end_and_writes_in_flight_finish() {
    let directory = DataDir::new();
    let server = directory.start_with(&GRACE);
    let mut idle = server.connect();
    idle.get("/version").expect(200);
    let mut watch = server.connect().watch(&format!("{CONFIG_MAPS}?watch=1")).expect("an answer").expect("a watch");
    let (first, second) = halves("late");
    let mut writer = server.connect();
    writer.send(first.as_bytes()).expect("half of a request");
    // Once the server has answered this later request, it has received the first half.
    idle.get("/version").expect(200);

    server.send_sigterm();
    watch.end().expect("a proper end of the watch");
    writer.send(second.as_bytes()).expect("the rest of the request");
    writer.read_answer().expect("an answer").expect(201);
    let begun = Instant::now();
    assert_eq!(server.wait().code(), Some(0));
    assert!(begun.elapsed() < END_MAX, "an idle connection does not delay the end");

    let server = directory.start();
    server.connect().get(&config_map_path("late")).expect(200);
}

#[test]
fn a_server_that_will_stop_is_not_ready_but_still_serves() {
    let directory = DataDir::new();
    let server = directory.start_with(&["--shutdown-delay-seconds", &DELAY_SECONDS.to_string()]);
    let mut administrator = server.connect();
    let mut watch = server.connect().watch(&format!("{CONFIG_MAPS}?watch=1")).expect("an answer").expect("a watch");
    server.send_sigterm();
    let deadline = Instant::now() + Duration::from_secs(DELAY_SECONDS);
    let refused = loop {
        let answer = administrator.get("/readyz");
        if answer.status != 200 {
            break answer;
        }
        assert!(Instant::now() < deadline, "still ready");
    };
    assert_eq!(refused.status, 500);
    assert!(refused.text().contains("[-]shutdown failed: reason withheld\n"), "{}", refused.text());
    assert_eq!(administrator.get("/livez").status, 200);
    // A new client is still served.
    server.connect().post(CONFIG_MAPS, &config_map("during", "1")).expect(201);
    while watch.next().expect("an event")["object"]["metadata"]["name"] != "during" {}
    watch.end().expect("a proper end of the watch");
    assert_eq!(server.wait().code(), Some(0));
}
