//! The first bytes of each kind of file of a store.

/// The beginning of a file of one kind.
pub(crate) type Magic = [u8; 8];

/// A segment of the log.
pub(crate) const SEGMENT: &Magic = b"FLOTWAL\n";
/// A snapshot of a group.
pub(crate) const SNAPSHOT: &Magic = b"FLOTSNP\n";
/// The notes of how far the log has come. The first of them may be missing, so that the file begins with zeros.
pub(crate) const LOG_NOTES: &Magic = b"FLOTLOG\n";
/// A file of any of these kinds that is encrypted.
pub(super) const ENCRYPTED: &Magic = b"FLOTENC\n";

/// Returns whether a file with this beginning has content of users that is not encrypted.
pub(super) fn has_plain_content(beginning: &[u8]) -> bool {
    [SEGMENT, SNAPSHOT].iter().any(|magic| beginning.starts_with(&magic[..]))
}

/// Returns whether a file with this beginning is not encrypted, or was not written yet. Any other file is encrypted or
/// damaged.
pub(super) fn is_plain(beginning: &[u8]) -> bool {
    let starts = |magic: &Magic| beginning.starts_with(magic);
    beginning.len() < size_of::<Magic>() || has_plain_content(beginning) || starts(LOG_NOTES) || starts(&[0; 8])
}
