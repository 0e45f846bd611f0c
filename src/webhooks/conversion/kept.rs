//! Conversions that are known, and those that are being asked for.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::{Arc, LazyLock};

use flotilla_proto::json;
use flotilla_proto::value::Value;
use parking_lot::Mutex;
use ring::digest::{Context, SHA256};
use tokio::sync::watch;

use crate::limits;
use crate::status::ApiResult;

/// What tells conversions apart: what the definition says, the version, and the object.
pub type Key = [u8; 32];

/// Tells what became of a conversion that somebody asked for.
pub type Outcome = watch::Receiver<Option<ApiResult<()>>>;

/// All conversions that are known in this process: definitions come and go, and share the room.
static KEPT: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Kept {
    known: HashMap<Key, (Arc<Value>, usize)>,
    asked: HashMap<Key, Outcome>,
    order: VecDeque<Key>,
    bytes: usize,
}

/// The key of an object that is to be converted. `serial` is that of the definition.
pub fn key(serial: NonZeroU32, api_version: &str, object: &Value) -> Key {
    let mut context = Context::new(&SHA256);
    context.update(&serial.get().to_le_bytes());
    context.update(api_version.as_bytes());
    context.update(b"\n");
    context.update(&json::to_vec(object));
    context.finish().as_ref().try_into().unwrap_or_default()
}

/// What an object is in another version, if that is known.
pub fn find(serial: NonZeroU32, api_version: &str, object: &Value) -> Option<Arc<Value>> {
    get(&key(serial, api_version, object))
}

/// What is known under a key.
pub fn get(key: &Key) -> Option<Arc<Value>> {
    KEPT.lock().known.get(key).map(|(converted, _)| Arc::clone(converted))
}

/// Who is to ask for a conversion.
pub enum Turn {
    /// It is known.
    Known,
    /// Whoever asked here, and tells others.
    Own,
    /// Somebody else has asked.
    Others(Outcome),
}

/// Whose turn it is; `outcome` is what others learn from if it is the caller's.
pub fn turn(key: Key, outcome: &Outcome) -> Turn {
    let mut kept = KEPT.lock();
    if kept.known.contains_key(&key) {
        return Turn::Known;
    }
    if let Some(others) = kept.asked.get(&key) {
        // A task that was ended has told nobody.
        if others.has_changed().is_ok() || others.borrow().is_some() {
            return Turn::Others(others.clone());
        }
    }
    kept.asked.insert(key, outcome.clone());
    Turn::Own
}

/// Keeps what was answered; the oldest make room.
pub fn keep(converted: Vec<(Key, Value)>) {
    let converted = converted.into_iter().map(|(key, value)| {
        let bytes = json::to_vec(&value).len();
        (key, value, bytes)
    });
    let converted: Vec<_> = converted.collect();
    let mut kept = KEPT.lock();
    for (key, value, bytes) in converted {
        if kept.known.insert(key, (Arc::new(value), bytes)).is_none() {
            kept.order.push_back(key);
            kept.bytes += bytes;
        }
    }
    while kept.bytes > limits::CONVERSIONS_KEPT_BYTES {
        let Some(oldest) = kept.order.pop_front() else { break };
        let freed = kept.known.remove(&oldest).map_or(0, |(_, bytes)| bytes);
        kept.bytes -= freed;
    }
}

/// These are asked for no more.
pub fn answered(keys: &[Key]) {
    let mut kept = KEPT.lock();
    for key in keys {
        kept.asked.remove(key);
    }
}
