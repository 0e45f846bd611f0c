//! Chunks, the units of snapshots and backups: `length | checksum | kind | content`.
//!
//! Length and checksum (CRC-32C) cover kind and content, and have four bytes each, little-endian.

/// Bytes of length and checksum, before the kind of a chunk.
pub(crate) const HEAD_BYTES: usize = 8;

/// Empties a buffer and starts a chunk in it.
pub(crate) fn begin(kind: u8, chunk: &mut Vec<u8>) {
    chunk.clear();
    chunk.extend_from_slice(&[0; HEAD_BYTES]);
    chunk.push(kind);
}

/// Fills in length and checksum of a complete chunk.
pub(crate) fn seal(chunk: &mut [u8]) {
    let length = (chunk.len() - HEAD_BYTES) as u32;
    let checksum = crc32c::crc32c(&chunk[HEAD_BYTES..]);
    chunk[..4].copy_from_slice(&length.to_le_bytes());
    chunk[4..HEAD_BYTES].copy_from_slice(&checksum.to_le_bytes());
}

/// Returns length and checksum from the head of a chunk.
pub(crate) fn head(head: [u8; HEAD_BYTES]) -> (usize, u32) {
    let [a, b, c, d, e, f, g, h] = head;
    (u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes([e, f, g, h]))
}
