//! Links that can be opened once, and the sessions of browsers that opened one.
//!
//! Only digests of tokens are kept, and a token is compared with all of them to their ends: neither the memory of the
//! process nor the time of a comparison reveals a token.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::access::User;
use crate::limits;

/// Random bytes in a token.
const TOKEN_BYTES: usize = 32;

#[derive(Debug)]
struct IssuedLink {
    digest: [u8; 32],
    user: Arc<User>,
    ends: Instant,
}

/// Tokens of one kind with their users, the oldest first. If a new one would exceed the bound, the oldest is dropped.
#[derive(Debug)]
struct Tokens {
    entries: Vec<IssuedLink>,
    most: usize,
    lifetime: Duration,
}

impl Tokens {
    const fn new(most: usize, lifetime: Duration) -> Self {
        Self { entries: Vec::new(), most, lifetime }
    }

    /// Issues a token that identifies a user. Returns `None` if the machine has no random numbers.
    fn issue(&mut self, user: Arc<User>, now: Instant) -> Option<String> {
        let mut bytes = [0; TOKEN_BYTES];
        SystemRandom::new().fill(&mut bytes).ok()?;
        let token = URL_SAFE_NO_PAD.encode(bytes);
        self.entries.retain(|entry| entry.ends > now);
        if self.entries.len() >= self.most {
            self.entries.remove(0);
        }
        self.entries.push(IssuedLink { digest: digested(&token), user, ends: now + self.lifetime });
        Some(token)
    }

    /// Returns the user of a token. Returns `None` if the token cannot be used.
    fn user(&self, token: &str, now: Instant) -> Option<Arc<User>> {
        self.find(token, now).map(|at| Arc::clone(&self.entries[at].user))
    }

    /// Returns the position of a token. Returns `None` if the token cannot be used.
    fn find(&self, token: &str, now: Instant) -> Option<usize> {
        let shown = digested(token);
        let mut found = None;
        for (at, entry) in self.entries.iter().enumerate() {
            if is_same(&entry.digest, &shown) && entry.ends > now {
                found = Some(at);
            }
        }
        found
    }
}

fn digested(token: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}

/// Compares all bytes, also after a difference.
fn is_same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    std::hint::black_box(a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b))) == 0
}

/// Links that can still be opened, and sessions that have not ended.
#[derive(Debug)]
pub struct Links {
    links: Mutex<Tokens>,
    sessions: Mutex<Tokens>,
}

impl Default for Links {
    fn default() -> Self {
        Self {
            links: Mutex::new(Tokens::new(limits::CONSOLE_LINKS, limits::CONSOLE_LINK_LIFETIME)),
            sessions: Mutex::new(Tokens::new(limits::CONSOLE_SESSIONS, limits::CONSOLE_SESSION_LIFETIME)),
        }
    }
}

impl Links {
    /// Issues a link that identifies a user, and returns its token. Returns `None` if the machine has no random
    /// numbers.
    pub fn issue(&self, user: Arc<User>, now: Instant) -> Option<String> {
        self.links.lock().issue(user, now)
    }

    /// Returns the user of a link. Returns `None` if the link can no longer be opened.
    pub fn user_of_link(&self, token: &str, now: Instant) -> Option<Arc<User>> {
        self.links.lock().user(token, now)
    }

    /// Uses up a link, and returns the token of a new session of its user. Returns `None` for a link that has been
    /// used, is too old or was never issued. Also returns `None` if the machine has no random numbers.
    pub fn exchange(&self, token: &str, now: Instant) -> Option<String> {
        let user = {
            let mut links = self.links.lock();
            let at = links.find(token, now)?;
            links.entries.remove(at).user
        };
        self.sessions.lock().issue(user, now)
    }

    /// Returns the user of a session. Returns `None` if the session has ended.
    pub fn user_of_session(&self, token: &str, now: Instant) -> Option<Arc<User>> {
        self.sessions.lock().user(token, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> Arc<User> {
        Arc::new(User { name: name.into(), ..User::default() })
    }

    #[test]
    fn a_link_is_valid_once_and_for_a_limited_time() {
        let (links, now) = (Links::default(), Instant::now());
        let token = links.issue(user("ann"), now).unwrap();
        assert!(links.exchange("", now).is_none() && links.exchange(&token[1..], now).is_none());
        assert!(links.user_of_session(&token, now).is_none(), "a link is no session");
        assert_eq!(links.user_of_link(&token, now).unwrap().name, "ann");
        let session = links.exchange(&token, now).unwrap();
        assert!(links.user_of_link(&token, now).is_none());
        assert!(links.exchange(&token, now).is_none(), "it is used up");
        assert!(links.exchange(&session, now).is_none(), "a session is no link");
        assert_eq!(links.user_of_session(&session, now).unwrap().name, "ann");
        let later = now + limits::CONSOLE_SESSION_LIFETIME;
        assert!(links.user_of_session(&session, later).is_none());
        let token = links.issue(user("ann"), now).unwrap();
        assert!(links.exchange(&token, now + limits::CONSOLE_LINK_LIFETIME).is_none());
    }

    #[test]
    fn the_oldest_link_and_session_are_dropped() {
        let (links, now) = (Links::default(), Instant::now());
        let made: Vec<_> = (0..=limits::CONSOLE_LINKS).map(|_| links.issue(user("ann"), now).unwrap()).collect();
        assert!(links.exchange(&made[0], now).is_none());
        assert!(made[1..].iter().all(|token| links.exchange(token, now).is_some()));
        assert_eq!(links.links.lock().entries.len(), 0);
    }
}
