//! Keys by which tests encrypt files.

use std::io;
use std::sync::Arc;

use super::simulated::SimulatedDisk;
use super::{EncryptedDisk, KeyWrapping};

/// Wraps a key by adding a number to each of its bytes. Can unwrap keys that were wrapped by the `known` numbers.
#[derive(Clone)]
pub(crate) struct Adding {
    /// The number by which keys of new files are wrapped. `None` if new files are not encrypted.
    pub(crate) current: Option<u8>,
    pub(crate) known: Vec<u8>,
    /// Zeros that follow a wrapped key.
    pub(crate) padding: usize,
}

impl Adding {
    pub(crate) fn with(current: Option<u8>, known: &[u8]) -> Arc<Adding> {
        Arc::new(Adding { current, known: known.to_vec(), padding: 0 })
    }
}

impl KeyWrapping for Adding {
    fn wrap(&self, key: &[u8]) -> Option<io::Result<Vec<u8>>> {
        let by = self.current?;
        let mut wrapped = vec![by];
        wrapped.extend(key.iter().map(|byte| byte.wrapping_add(by)));
        wrapped.resize(wrapped.len() + self.padding, 0);
        Some(Ok(wrapped))
    }

    fn unwrap(&self, wrapped: &[u8]) -> io::Result<Vec<u8>> {
        let (by, key) = wrapped[..wrapped.len() - self.padding].split_first().ok_or(io::ErrorKind::InvalidData)?;
        match self.known.contains(by) {
            true => Ok(key.iter().map(|byte| byte.wrapping_sub(*by)).collect()),
            false => Err(io::Error::other(format!("key {by} is missing"))),
        }
    }

    fn is_current(&self, wrapped: &[u8]) -> bool {
        wrapped.first() == self.current.as_ref()
    }
}

/// Returns a disk whose files have keys that [`Adding`] wraps.
pub(crate) fn encrypted(disk: &SimulatedDisk, wrapping: Arc<Adding>) -> EncryptedDisk {
    EncryptedDisk::over(Arc::new(disk.clone()), Some(wrapping))
}

/// Returns whether a text is somewhere in these bytes.
pub(crate) fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}
