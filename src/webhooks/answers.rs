//! The last answers of a webhook, kept to spare it repeated questions.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

/// The digest of a question.
pub type QuestionDigest = [u8; SHA256_OUTPUT_LEN];

/// Returns the key of a question, given as bytes.
pub fn key(question: &[u8]) -> QuestionDigest {
    let mut key = [0; SHA256_OUTPUT_LEN];
    key.copy_from_slice(digest(&SHA256, question).as_ref());
    key
}

/// Answers by question, each for a time. When there are too many, the oldest goes first.
#[derive(Debug)]
pub struct Answers<V> {
    kept_max: usize,
    kept: Mutex<Kept<V>>,
}

#[derive(Debug)]
struct Kept<V> {
    /// The answers, the times at which they end, and the numbers under which `by_age` has them.
    by_key: HashMap<QuestionDigest, (V, Instant, u64)>,
    /// The keys in the order in which their answers came. The key of a replaced answer has another number.
    by_age: VecDeque<(QuestionDigest, u64)>,
    next: u64,
}

impl<V: Clone> Answers<V> {
    /// Returns an empty cache for this many answers.
    pub fn new(kept_max: usize) -> Self {
        let kept = Kept { by_key: HashMap::new(), by_age: VecDeque::new(), next: 0 };
        Self { kept_max, kept: Mutex::new(kept) }
    }

    /// Returns the answer to a question. Returns `None` if there is none, or its time is over.
    pub fn get(&self, key: &QuestionDigest, now: Instant) -> Option<V> {
        let kept = self.kept.lock();
        kept.by_key.get(key).filter(|(_, ends, _)| now <= *ends).map(|(value, ..)| value.clone())
    }

    /// Keeps an answer for a time. If that is zero, does nothing.
    pub fn keep(&self, key: QuestionDigest, value: V, now: Instant, ttl: Duration) {
        if ttl.is_zero() {
            return;
        }
        // An end that the clock cannot represent is replaced by one that is far away.
        let ends = now.checked_add(ttl).unwrap_or(now + Duration::from_secs(u32::MAX.into()));
        let mut kept = self.kept.lock();
        let number = kept.next;
        kept.next += 1;
        kept.by_key.insert(key, (value, ends, number));
        kept.by_age.push_back((key, number));
        while kept.by_key.len() > self.kept_max || kept.by_age.len() > 2 * self.kept_max {
            let Some((key, number)) = kept.by_age.pop_front() else { break };
            if kept.by_key.get(&key).is_some_and(|(.., own)| *own == number) {
                kept.by_key.remove(&key);
            }
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.kept.lock().by_key.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_kept_for_a_time_and_the_oldest_goes_first() {
        let (answers, now) = (Answers::new(8), Instant::now());
        let key = |number: u8| key(&[number]);
        let (ttl, after) = (Duration::from_secs(2), |seconds| now + Duration::from_secs(seconds));
        answers.keep(key(0), "no", now, ttl);
        assert_eq!((answers.get(&key(0), after(2)), answers.get(&key(0), after(3))), (Some("no"), None));
        for number in 1..=8 {
            answers.keep(key(number), "yes", now, ttl);
        }
        assert_eq!((answers.get(&key(0), now), answers.len()), (None, 8));
        answers.keep(key(9), "yes", now, Duration::ZERO);
        assert_eq!(answers.get(&key(9), now), None);
        for _ in 0..100 {
            answers.keep(key(5), "again", now, Duration::MAX);
        }
        assert_eq!((answers.get(&key(5), after(9)), answers.get(&key(4), now)), (Some("again"), None));
        assert!(answers.kept.lock().by_age.len() <= 16);
    }
}
