//! Links that can be used once, and the browsers that came by one.
//!
//! Only digests of what clients show are kept, and every one of them is compared to its end, so that neither memory nor
//! time tells what would be right.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::access::User;
use crate::limits;

/// Bytes of chance in a token.
const TOKEN_BYTES: usize = 32;

#[derive(Debug)]
struct Entry {
    digest: [u8; 32],
    user: Arc<User>,
    ends: Instant,
}

/// Tokens of one kind, with whose they are. The oldest make room for new ones.
#[derive(Debug)]
struct Tokens {
    entries: Vec<Entry>,
    most: usize,
    lifetime: Duration,
}

impl Tokens {
    const fn new(most: usize, lifetime: Duration) -> Self {
        Self { entries: Vec::new(), most, lifetime }
    }

    /// A new token of a user; `None` where the machine has no random numbers.
    fn issue(&mut self, user: Arc<User>, now: Instant) -> Option<String> {
        let mut bytes = [0; TOKEN_BYTES];
        SystemRandom::new().fill(&mut bytes).ok()?;
        let token = URL_SAFE_NO_PAD.encode(bytes);
        self.entries.retain(|entry| entry.ends > now);
        if self.entries.len() >= self.most {
            self.entries.remove(0);
        }
        self.entries.push(Entry { digest: digested(&token), user, ends: now + self.lifetime });
        Some(token)
    }

    /// Where a token stands, if it can be used.
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

/// Compares all bytes, whatever they are.
fn is_same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    std::hint::black_box(a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b))) == 0
}

/// Links that were made and not used yet, and browsers that came by one.
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
    /// Makes the token of a link by which a browser will be `user`. `None` where the machine has no random numbers.
    pub fn make(&self, user: Arc<User>, now: Instant) -> Option<String> {
        self.links.lock().issue(user, now)
    }

    /// Uses up a link: the token of a session of its user. `None` for one that was used, is out of date or never was.
    pub fn open(&self, token: &str, now: Instant) -> Option<String> {
        let user = {
            let mut links = self.links.lock();
            let at = links.find(token, now)?;
            links.entries.remove(at).user
        };
        self.sessions.lock().issue(user, now)
    }

    /// Whose session it is.
    pub fn user(&self, session: &str, now: Instant) -> Option<Arc<User>> {
        let sessions = self.sessions.lock();
        sessions.find(session, now).map(|at| Arc::clone(&sessions.entries[at].user))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> Arc<User> {
        Arc::new(User { name: name.into(), ..User::default() })
    }

    #[test]
    fn a_link_is_good_once_and_for_a_while() {
        let (links, now) = (Links::default(), Instant::now());
        let token = links.make(user("ann"), now).unwrap();
        assert!(links.open("", now).is_none() && links.open(&token[1..], now).is_none());
        assert!(links.user(&token, now).is_none(), "a link is no session");
        let session = links.open(&token, now).unwrap();
        assert!(links.open(&token, now).is_none(), "it is used up");
        assert!(links.open(&session, now).is_none(), "a session is no link");
        assert_eq!(links.user(&session, now).unwrap().name, "ann");
        let later = now + limits::CONSOLE_SESSION_LIFETIME;
        assert!(links.user(&session, later).is_none());
        let token = links.make(user("ann"), now).unwrap();
        assert!(links.open(&token, now + limits::CONSOLE_LINK_LIFETIME).is_none());
    }

    #[test]
    fn the_oldest_make_room() {
        let (links, now) = (Links::default(), Instant::now());
        let made: Vec<_> = (0..=limits::CONSOLE_LINKS).map(|_| links.make(user("ann"), now).unwrap()).collect();
        assert!(links.open(&made[0], now).is_none());
        assert!(made[1..].iter().all(|token| links.open(token, now).is_some()));
        assert_eq!(links.links.lock().entries.len(), 0);
    }
}
