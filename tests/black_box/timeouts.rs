//! Requests that exceed their timeout.

use std::time::{Duration, Instant};

use crate::support::{CONFIG_MAPS, DataDir};

#[test]
fn a_request_that_takes_too_long_is_aborted() {
    let directory = DataDir::new();
    let server = directory.start();
    let mut slow = server.connect();
    let head = "HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{";
    let begun = Instant::now(); // the server receives the request later
    slow.send(format!("POST {CONFIG_MAPS}?timeout=1s {head}").as_bytes()).expect("a part of a request");
    let answer = slow.read_answer().expect("an answer");
    assert_eq!(answer.status, 504);
    assert_eq!(
        answer.text(),
        "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"Timeout: request did not complete within the allotted \
         timeout\",\"reason\":\"Timeout\",\"details\":{},\"code\":504}"
    );
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(900) && took < Duration::from_secs(45), "{took:?}");
    let metrics = server.connect().get("/metrics").text();
    let given_up = "apiserver_request_terminations_total{code=\"504\",component=\"apiserver\",group=\"\",\
                    resource=\"configmaps\",scope=\"resource\",subresource=\"\",verb=\"POST\",version=\"v1\"} 1";
    assert!(metrics.contains(given_up), "{metrics}");
}

#[test]
fn the_time_of_requests_and_of_watches_is_configured() {
    let directory = DataDir::new();
    let server = directory.start_with(&["--request-timeout-seconds=3", "--min-request-timeout=1"]);
    let mut slow = server.connect();
    let head = "HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{";
    slow.send(format!("POST {CONFIG_MAPS} {head}").as_bytes()).expect("a part of a request");
    assert_eq!(slow.read_answer().expect("an answer").status, 504);
    // A watch lasts between one and two seconds, although its client states no time.
    let begun = Instant::now();
    let mut watch = server.connect().watch(&format!("{CONFIG_MAPS}?watch=1")).expect("an answer").expect("a watch");
    watch.end().expect("a proper end of the watch");
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
}
