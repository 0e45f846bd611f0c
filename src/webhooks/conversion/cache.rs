//! Keeps the conversions that webhooks made, and tracks those that are in progress.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::{Arc, LazyLock, Weak};

use flotilla_proto::json;
use flotilla_proto::value::Value;
use parking_lot::Mutex;
use ring::digest::{Context, SHA256};
use tokio::sync::watch;

use crate::limits;
use crate::status::ApiResult;

/// Identifies a conversion by definition, target version and object.
pub type Key = [u8; 32];

/// Announces the outcome of a conversion that another task has requested.
pub type Outcome = watch::Receiver<Option<ApiResult<()>>>;

/// The conversions of all definitions of this process. They share one size limit.
static CACHE: LazyLock<Mutex<Cache>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Cache {
    known: HashMap<Key, (Arc<Value>, usize)>,
    /// Conversions that made room for others while callers still held them.
    held: HashMap<Key, Weak<Value>>,
    asked: HashMap<Key, Outcome>,
    order: VecDeque<Key>,
    bytes: usize,
}

impl Cache {
    fn get(&self, key: &Key) -> Option<Arc<Value>> {
        let known = self.known.get(key).map(|(converted, _)| Arc::clone(converted));
        known.or_else(|| self.held.get(key).and_then(Weak::upgrade))
    }

    /// Adds conversions, each with its size in bytes. Drops the oldest ones above the size limit.
    fn keep(&mut self, converted: Vec<(Key, Value, usize)>) {
        for (key, value, bytes) in converted {
            if self.known.insert(key, (Arc::new(value), bytes)).is_none() {
                self.order.push_back(key);
                self.bytes += bytes;
            }
        }
        while self.bytes > limits::CONVERSIONS_KEPT_BYTES {
            let Some(oldest) = self.order.pop_front() else { break };
            let Some((converted, freed)) = self.known.remove(&oldest) else { continue };
            self.bytes -= freed;
            self.held.retain(|_, held| held.strong_count() > 0);
            if Arc::strong_count(&converted) > 1 {
                self.held.insert(oldest, Arc::downgrade(&converted));
            }
        }
    }
}

/// Returns the key of a conversion. `serial` is that of the definition.
pub fn key(serial: NonZeroU32, api_version: &str, object: &Value) -> Key {
    let mut context = Context::new(&SHA256);
    context.update(&serial.get().to_le_bytes());
    context.update(api_version.as_bytes());
    context.update(b"\n");
    context.update(&json::to_vec(object));
    context.finish().as_ref().try_into().unwrap_or_default()
}

/// Returns an object in another version. Returns `None` if that conversion is not known.
pub fn find(serial: NonZeroU32, api_version: &str, object: &Value) -> Option<Arc<Value>> {
    get(&key(serial, api_version, object))
}

/// Returns the conversion with this key. It stays known as long as the caller holds it. Returns `None` if it is not
/// known.
pub fn get(key: &Key) -> Option<Arc<Value>> {
    CACHE.lock().get(key)
}

/// The caller's way to get a conversion.
pub enum Turn {
    /// Do nothing: the conversion is known.
    Known,
    /// Request the conversion and announce the outcome.
    Own,
    /// Wait for the outcome: another task has requested it.
    Others(Outcome),
}

/// Decides whether the caller requests a conversion. If so, other tasks wait for `outcome`.
pub fn turn(key: Key, outcome: &Outcome) -> Turn {
    let mut cache = CACHE.lock();
    if cache.get(&key).is_some() {
        return Turn::Known;
    }
    if let Some(others) = cache.asked.get(&key) {
        // An aborted task leaves an outcome that will never be announced.
        if others.has_changed().is_ok() || others.borrow().is_some() {
            return Turn::Others(others.clone());
        }
    }
    cache.asked.insert(key, outcome.clone());
    Turn::Own
}

/// Keeps conversions. Drops the oldest ones above the size limit.
pub fn keep(converted: Vec<(Key, Value)>) {
    let converted = converted.into_iter().map(|(key, value)| {
        let bytes = json::to_vec(&value).len();
        (key, value, bytes)
    });
    let converted: Vec<_> = converted.collect();
    CACHE.lock().keep(converted);
}

/// Removes conversions from those in progress.
pub fn answered(keys: &[Key]) {
    let mut cache = CACHE.lock();
    for key in keys {
        cache.asked.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversion_is_dropped_for_others_once_nobody_holds_it() {
        let mut cache = Cache::default();
        let sized = |key: u8, bytes: usize| vec![([key; 32], Value::from("converted"), bytes)];
        cache.keep([sized(1, 1), sized(2, 1)].concat());
        let held = cache.get(&[1; 32]);
        cache.keep(sized(3, limits::CONVERSIONS_KEPT_BYTES));
        let is_known = |cache: &Cache| [1, 2, 3].map(|key| cache.get(&[key; 32]).is_some());
        assert_eq!(is_known(&cache), [true, false, true]);
        drop(held);
        assert_eq!(is_known(&cache), [false, false, true]);
    }
}
