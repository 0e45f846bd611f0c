//! The key of an encrypted file, and the page before the file's content that has it, encrypted by another key.
//!
//! The page has two equal copies of a header, `magic | format | length | wrapped key | checksum`. A key is wrapped anew
//! one copy after the other, so that a crash leaves one of them.

use std::io;

use aes::Aes256;
use aes::cipher::KeyInit;
use rand::TryRngCore;
use rand::rngs::OsRng;
use xts_mode::{Xts128, get_tweak_default};

use super::{DiskFile, PAGE, SECTOR};

const MAGIC: &[u8; 8] = b"FLOTENC\n";
/// The format of headers that this release writes, and the only one that it reads.
const FORMAT: u32 = 1;
/// The distance of the two copies of the header, which share no sector.
const DISTANCE: usize = PAGE / 2;
const FIXED: usize = 16;
const CHECKSUM: usize = 4;
/// The longest wrapped key, in bytes.
const WRAPPED_MAX: usize = DISTANCE - FIXED - CHECKSUM;
/// Two keys of AES-256: XTS encrypts positions with the second.
const KEY: usize = 64;

/// Encrypts the keys of files, with keys of its own that lie elsewhere.
pub trait KeyWrapping: Send + Sync {
    /// Encrypts the key of a new file. `None` if new files are not to be encrypted.
    fn wrap(&self, key: &[u8]) -> Option<io::Result<Vec<u8>>>;

    /// Decrypts the key of a file.
    ///
    /// # Errors
    /// Fails when the key that this needs is missing. The text names it.
    fn unwrap(&self, wrapped: &[u8]) -> io::Result<Vec<u8>>;

    /// Returns whether [`KeyWrapping::wrap`] encrypts with the key with which this was encrypted.
    fn is_current(&self, wrapped: &[u8]) -> bool;
}

/// Encrypts and decrypts the sectors of a file by XTS-AES-256 (IEEE 1619), each with its position in the file. A sector
/// of zeros stays as it is: it was never written, and shows where the log ends.
pub(super) struct FileKey(Xts128<Aes256>);

impl FileKey {
    /// Makes the key of a new file. Returns it with its header page; `None` if new files are not to be encrypted.
    pub(super) fn create(wrapping: &dyn KeyWrapping) -> io::Result<Option<(FileKey, Vec<u8>)>> {
        let mut key = [0; KEY];
        OsRng.try_fill_bytes(&mut key).map_err(io::Error::other)?;
        let Some(wrapped) = wrapping.wrap(&key) else { return Ok(None) };
        let mut page = header(&wrapped?)?;
        page.extend_from_within(..);
        Ok(Some((FileKey::of(&key)?, page)))
    }

    fn of(key: &[u8]) -> io::Result<FileKey> {
        let halves = key.split_at_checked(KEY / 2).filter(|_| key.len() == KEY);
        let ciphers = halves.and_then(|(content, position)| {
            Some((Aes256::new_from_slice(content).ok()?, Aes256::new_from_slice(position).ok()?))
        });
        let (content, position) = ciphers.ok_or_else(|| invalid("the key of the file has another length"))?;
        Ok(FileKey(Xts128::new(content, position)))
    }

    /// Encrypts whole sectors, the first of which has this number.
    pub(super) fn encrypt(&self, sectors: &mut [u8], first: u64) {
        self.convert(sectors, first, |key, sector, tweak| key.encrypt_sector(sector, tweak));
    }

    /// Decrypts whole sectors, the first of which has this number.
    pub(super) fn decrypt(&self, sectors: &mut [u8], first: u64) {
        self.convert(sectors, first, |key, sector, tweak| key.decrypt_sector(sector, tweak));
    }

    fn convert(&self, sectors: &mut [u8], first: u64, convert: impl Fn(&Xts128<Aes256>, &mut [u8], [u8; 16])) {
        for (number, sector) in (first..).zip(sectors.chunks_exact_mut(SECTOR)) {
            if sector.iter().any(|byte| *byte != 0) {
                convert(&self.0, sector, get_tweak_default(u128::from(number)));
            }
        }
    }
}

/// The wrapped key of an encrypted file.
pub(super) struct WrappedKey {
    wrapped: Vec<u8>,
    /// Whether both copies of the header are the same.
    is_whole: bool,
}

impl WrappedKey {
    /// Reads the wrapped key of a file. `None` when the file is not encrypted.
    pub(super) fn read(file: &dyn DiskFile) -> io::Result<Option<WrappedKey>> {
        let mut page = vec![0; PAGE];
        let length = file.read_at(0, &mut page)?;
        if !page[..length].starts_with(MAGIC) {
            return Ok(None);
        }
        let [first, second] = [&page[..DISTANCE], &page[DISTANCE..]].map(parse);
        if let (Err(newer), _) | (_, Err(newer)) = (&first, &second) {
            let text =
                format!("its encryption has format {newer}, newer than {FORMAT}, the newest that this release reads");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let (first, second) = (first.ok().flatten(), second.ok().flatten());
        let is_whole = first == second;
        let wrapped = first.or(second).ok_or_else(|| invalid("the key of the encrypted file is damaged"))?;
        Ok(Some(WrappedKey { wrapped: wrapped.to_vec(), is_whole }))
    }

    /// Decrypts the key.
    pub(super) fn unwrap(&self, wrapping: &dyn KeyWrapping) -> io::Result<FileKey> {
        FileKey::of(&wrapping.unwrap(&self.wrapped)?)
    }

    /// Returns whether a new file would have its key wrapped by the same key.
    pub(super) fn is_current(&self, wrapping: &dyn KeyWrapping) -> bool {
        self.is_whole && wrapping.is_current(&self.wrapped)
    }

    /// Wraps the key of a file anew. Returns false if keys of new files are not wrapped at all.
    pub(super) fn renew(&self, file: &dyn DiskFile, wrapping: &dyn KeyWrapping) -> io::Result<bool> {
        let key = wrapping.unwrap(&self.wrapped)?;
        let Some(wrapped) = wrapping.wrap(&key) else { return Ok(false) };
        let header = header(&wrapped?)?;
        for offset in [0, DISTANCE] {
            file.write_at(offset as u64, &header)?;
            file.sync()?;
        }
        Ok(true)
    }
}

fn invalid(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Returns one copy of the header.
fn header(wrapped: &[u8]) -> io::Result<Vec<u8>> {
    if wrapped.len() > WRAPPED_MAX {
        return Err(invalid("the encrypted key of a file is too long"));
    }
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&FORMAT.to_le_bytes());
    header.extend_from_slice(&(wrapped.len() as u32).to_le_bytes());
    header.extend_from_slice(wrapped);
    header.extend_from_slice(&crc32c::crc32c(&header).to_le_bytes());
    header.resize(DISTANCE, 0);
    Ok(header)
}

/// Returns the wrapped key in one copy of the header; `None` if the copy is damaged.
///
/// # Errors
/// Returns the format if it is a newer one.
fn parse(header: &[u8]) -> Result<Option<&[u8]>, u32> {
    let word = |at: usize| Some(u32::from_le_bytes(header.get(at..at + 4)?.try_into().ok()?));
    match word(8) {
        Some(format) if header.starts_with(MAGIC) && format > FORMAT => return Err(format),
        _ => {}
    }
    let wrapped = || {
        let length = word(12)? as usize;
        let end = FIXED.checked_add(length)?;
        let wrapped = header.get(FIXED..end)?;
        (header.starts_with(MAGIC) && word(end)? == crc32c::crc32c(&header[..end])).then_some(wrapped)
    };
    Ok(wrapped())
}
