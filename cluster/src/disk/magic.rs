//! What each kind of file of a store begins with.

/// The beginning of a file of one kind.
pub(crate) type Magic = [u8; 8];

/// A segment of the log.
pub(crate) const SEGMENT: &Magic = b"FLOTWAL\n";
/// A snapshot of a group.
pub(crate) const SNAPSHOT: &Magic = b"FLOTSNP\n";
/// The notes of how far the log has come.
pub(crate) const NOTES: &Magic = b"FLOTLOG\n";
/// A file of any of these kinds that is encrypted.
pub(super) const ENCRYPTED: &Magic = b"FLOTENC\n";

/// Returns whether a file that begins so is not encrypted: it is of one of the kinds, or was not written yet.
pub(super) fn is_plain(beginning: &[u8]) -> bool {
    beginning.len() < size_of::<Magic>()
        || [SEGMENT, SNAPSHOT, NOTES, &[0; 8]].iter().any(|magic| beginning.starts_with(&magic[..]))
}
