//! A client that uses one member at a time, and another one after a failure.

use std::time::{Duration, Instant};

use rand::Rng as _;

use super::Traffic;
use crate::history::Interval;
use crate::support::{Answer, Connection, PATIENCE, Watch};

/// How long the client waits for an answer. On a busy machine, a healthy member may take long.
const TIMEOUT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 3 });
/// The pause after a failed connection, or a request without an answer.
const BACKOFF: Duration = Duration::from_millis(20);
/// One in so many requests goes to another member.
const MOVES_ONE_IN: u32 = 20;

pub struct Client<'a> {
    traffic: &'a Traffic,
    connection: Option<Connection>,
    member: usize,
}

impl<'a> Client<'a> {
    pub fn new(traffic: &'a Traffic) -> Client<'a> {
        Client { traffic, connection: None, member: 0 }
    }

    /// Returns the member to which the client connected last.
    pub fn member(&self) -> usize {
        self.member
    }

    /// Sends a request to some member. The answer is `None` if none came.
    pub fn call(&mut self, method: &str, path: &str, body: &[u8]) -> (Interval, Option<Answer>) {
        if rand::rng().random_ratio(1, MOVES_ONE_IN) {
            self.connection = None;
        }
        self.connect(None);
        self.call_connected(method, path, body)
    }

    /// Sends a request to this member. The answer is `None` if none came.
    pub fn call_member(&mut self, member: usize, method: &str, path: &str) -> (Interval, Option<Answer>) {
        if self.member != member {
            self.connection = None;
        }
        self.connect(Some(member));
        self.call_connected(method, path, b"")
    }

    /// Starts a watch on some member. Returns `None` if no answer came. The inner `Err` contains an answer that refuses
    /// the watch.
    pub fn watch(&mut self, path: &str) -> Option<Result<Watch, Answer>> {
        self.connection = None;
        self.connect(None);
        self.connection.take()?.watch(path).inspect_err(|_| self.traffic.count("no answer to a watch")).ok()
    }

    fn call_connected(&mut self, method: &str, path: &str, body: &[u8]) -> (Interval, Option<Answer>) {
        let headers: &[_] = if body.is_empty() { &[] } else { &[("Content-Type", "application/json")] };
        let invoked = self.traffic.now();
        let answer = self.connection.as_mut().and_then(|connection| connection.call(method, path, headers, body).ok());
        let returned = self.traffic.now();
        match &answer {
            None => {
                self.traffic.count(format!("no answer to {method}"));
                self.connection = None;
                std::thread::sleep(BACKOFF);
            }
            Some(answer) if answer.status >= 500 || answer.status == 429 => {
                self.traffic.count(format!("{} to {method}: {}", answer.status, answer.json()["message"]));
                self.connection = None;
                std::thread::sleep(BACKOFF);
            }
            Some(_) => {}
        }
        (Interval { invoked, returned }, answer)
    }

    /// Connects to the given member, or to any, unless the client is connected. Retries until a member accepts.
    fn connect(&mut self, member: Option<usize>) {
        let endpoints = &self.traffic.endpoints;
        let deadline = Instant::now() + PATIENCE;
        while self.connection.is_none() {
            assert!(Instant::now() < deadline, "no member accepts connections");
            self.member = member.unwrap_or_else(|| rand::rng().random_range(0..endpoints.members.len()));
            let opened = Connection::open_within(endpoints.members[self.member], &endpoints.administrator, TIMEOUT);
            if opened.is_err() {
                std::thread::sleep(BACKOFF);
            }
            self.connection = opened.ok();
        }
    }
}
