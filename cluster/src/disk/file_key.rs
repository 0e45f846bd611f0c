//! The key of an encrypted file. The file begins with two pages that contain this key, encrypted with another key.
//!
//! Each of the two pages has a copy of one header, `magic | format | length | wrapped key | checksum`. When a key is
//! wrapped anew, one copy is written after the other, so that at least one of them is valid after a crash.

use std::io;

use aes::Aes256;
use aes::cipher::KeyInit;
use rand::TryRngCore;
use rand::rngs::OsRng;
use xts_mode::{Xts128, get_tweak_default};

use super::magic::{self, ENCRYPTED as MAGIC};
use super::{DiskFile, PAGE, SECTOR};

/// The format of headers that this release writes, and the only one that it reads.
const FORMAT: u32 = 1;
/// Bytes before the content of an encrypted file.
pub(super) const HEADER: usize = 2 * PAGE;
const FIXED: usize = 16;
const CHECKSUM: usize = 4;
/// The longest wrapped key, in bytes.
const WRAPPED_MAX: usize = PAGE - FIXED - CHECKSUM;
/// Bytes of the key of a file: two keys of AES-256. XTS encrypts positions with the second.
const KEY: usize = 64;

/// Encrypts the keys of files, with keys of its own that are stored elsewhere.
pub trait KeyWrapping: Send + Sync {
    /// Encrypts the key of a new file. Returns `None` if new files are not encrypted.
    fn wrap(&self, key: &[u8]) -> Option<io::Result<Vec<u8>>>;

    /// Decrypts the key of a file.
    ///
    /// # Errors
    /// Fails when the key that encrypted `wrapped` is missing, or when `wrapped` is damaged.
    fn unwrap(&self, wrapped: &[u8]) -> io::Result<Vec<u8>>;

    /// Returns whether `wrapped` was encrypted with the key that [`KeyWrapping::wrap`] uses now.
    fn is_current(&self, wrapped: &[u8]) -> bool;
}

/// Encrypts and decrypts the sectors of a file by XTS-AES-256 (IEEE 1619), each with its position in the file. A sector
/// of zeros stays as it is: it was never written, and shows where the log ends.
pub(super) struct FileKey(Xts128<Aes256>);

impl FileKey {
    /// Makes the key of a new file. Returns it with both copies of the header. Returns `None` if new files are not
    /// encrypted.
    pub(super) fn create(wrapping: &dyn KeyWrapping) -> io::Result<Option<(FileKey, Vec<u8>)>> {
        let mut key = [0; KEY];
        OsRng.try_fill_bytes(&mut key).map_err(io::Error::other)?;
        let Some(wrapped) = wrapping.wrap(&key) else { return Ok(None) };
        let mut pages = header(&wrapped?)?;
        pages.extend_from_within(..);
        Ok(Some((FileKey::of(&key)?, pages)))
    }

    pub(super) fn of(key: &[u8]) -> io::Result<FileKey> {
        let halves = key.split_at_checked(KEY / 2).filter(|_| key.len() == KEY);
        let ciphers = halves.and_then(|(content, position)| {
            Some((Aes256::new_from_slice(content).ok()?, Aes256::new_from_slice(position).ok()?))
        });
        let (content, position) = ciphers.ok_or_else(|| invalid("the key of the file has another length"))?;
        Ok(FileKey(Xts128::new(content, position)))
    }

    /// Encrypts whole sectors. `first` is the number of the first one.
    pub(super) fn encrypt(&self, sectors: &mut [u8], first: u64) {
        self.convert(sectors, first, |key, sector, tweak| key.encrypt_sector(sector, tweak));
    }

    /// Decrypts whole sectors. `first` is the number of the first one.
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

/// The beginning of a file, which tells whether it is encrypted.
pub(super) enum Beginning {
    /// The header of an encrypted file.
    Encrypted(WrappedKey),
    /// The magic of another file of the store, or zeros.
    Plain,
    /// Neither of these: the beginning of the file has been damaged.
    Unknown,
}

impl Beginning {
    /// Reads the beginning of a file.
    ///
    /// # Errors
    /// Fails when the file cannot be read, when a later release has encrypted it, or when it is encrypted and neither
    /// copy of the header is valid.
    pub(super) fn read(file: &dyn DiskFile) -> io::Result<Beginning> {
        let mut pages = vec![0; HEADER];
        let length = file.read_at(0, &mut pages)?;
        let beginning = &pages[..length];
        if magic::has_plain_content(beginning) {
            return Ok(Beginning::Plain); // the content may look like a header at the second page
        }
        let [first, second] = [parse(&pages[..PAGE]), parse(&pages[PAGE..])];
        if first.wrapped().or(second.wrapped()).is_some() {
            return Ok(Beginning::Encrypted(WrappedKey { copies: [first.wrapped(), second.wrapped()] }));
        }
        match (first, second) {
            (Copy::Newer(newer), _) | (_, Copy::Newer(newer)) => {
                let text = format!(
                    "its encryption has format {newer}, newer than {FORMAT}, the newest that this release reads"
                );
                Err(io::Error::new(io::ErrorKind::InvalidData, text))
            }
            _ if beginning.starts_with(MAGIC) => Err(invalid("the header of the encrypted file is damaged")),
            _ => Ok(if magic::is_plain(beginning) { Beginning::Plain } else { Beginning::Unknown }),
        }
    }
}

/// The wrapped key of an encrypted file, in the two copies of its header. `None` for a copy that is damaged.
pub(super) struct WrappedKey {
    copies: [Option<Vec<u8>>; 2],
}

impl WrappedKey {
    /// Decrypts the key.
    pub(super) fn unwrap(&self, wrapping: &dyn KeyWrapping) -> io::Result<FileKey> {
        FileKey::of(&self.unwrapped(wrapping)?.1)
    }

    /// Decrypts one of the copies: after a crash they may be encrypted by different keys. Returns which copy, and the
    /// key. If no copy can be decrypted, the error is that of the first copy that is not damaged.
    fn unwrapped(&self, wrapping: &dyn KeyWrapping) -> io::Result<(usize, Vec<u8>)> {
        let [first, second] = &self.copies;
        let copies = [(0, first.as_ref()), (1, second.as_ref().filter(|_| first != second))];
        let mut failure = None;
        for (copy, wrapped) in copies {
            match wrapped.map(|wrapped| wrapping.unwrap(wrapped)) {
                Some(Ok(key)) => return Ok((copy, key)),
                Some(Err(error)) => drop(failure.get_or_insert(error)),
                None => {}
            }
        }
        Err(failure.unwrap_or_else(|| invalid("the header of the encrypted file is damaged")))
    }

    /// Returns whether both copies were wrapped by the key that wraps the keys of new files.
    pub(super) fn is_current(&self, wrapping: &dyn KeyWrapping) -> bool {
        let [first, second] = &self.copies;
        first == second && first.as_ref().is_some_and(|wrapped| wrapping.is_current(wrapped))
    }

    /// Wraps the key of a file anew. Returns false if keys of new files are not wrapped at all.
    pub(super) fn rewrap(&self, file: &dyn DiskFile, wrapping: &dyn KeyWrapping) -> io::Result<bool> {
        let (readable, key) = self.unwrapped(wrapping)?;
        let Some(wrapped) = wrapping.wrap(&key) else { return Ok(false) };
        let header = header(&wrapped?)?;
        // Until the other copy is written, the one that can be read must stay.
        for copy in [1 - readable, readable] {
            file.write_at((copy * PAGE) as u64, &header)?;
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
        let text = format!("an encrypted key of {} bytes is too long: {WRAPPED_MAX} fit", wrapped.len());
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&FORMAT.to_le_bytes());
    header.extend_from_slice(&(wrapped.len() as u32).to_le_bytes());
    header.extend_from_slice(wrapped);
    header.extend_from_slice(&crc32c::crc32c(&header).to_le_bytes());
    header.resize(PAGE, 0);
    Ok(header)
}

/// One copy of the header, as it was read.
enum Copy<'a> {
    Wrapped(&'a [u8]),
    /// The header states this format. A later release wrote it, or its bytes are damaged.
    Newer(u32),
    Damaged,
}

impl Copy<'_> {
    fn wrapped(&self) -> Option<Vec<u8>> {
        if let Copy::Wrapped(wrapped) = self { Some(wrapped.to_vec()) } else { None }
    }
}

/// Parses one copy of the header.
fn parse(header: &[u8]) -> Copy<'_> {
    let word = |at: usize| Some(u32::from_le_bytes(header.get(at..at + 4)?.try_into().ok()?));
    let wrapped = || {
        let end = FIXED.checked_add(word(12)? as usize)?;
        let wrapped = header.get(FIXED..end)?;
        (word(8)? == FORMAT && word(end)? == crc32c::crc32c(&header[..end])).then_some(wrapped)
    };
    match (header.starts_with(MAGIC), wrapped(), word(8)) {
        (true, Some(wrapped), _) => Copy::Wrapped(wrapped),
        (true, None, Some(format)) if format > FORMAT => Copy::Newer(format),
        _ => Copy::Damaged,
    }
}
