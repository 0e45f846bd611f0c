//! Resources that a server may run out of: disk, valid certificates, the right time.

use std::path::Path;

use crate::prometheus::Page;
use crate::wall_clock;

/// Returns the size of the disk of a directory, and the free space for this process, in bytes. Returns `None` if the
/// operating system does not know.
pub fn disk(directory: &Path) -> Option<(u64, u64)> {
    let disk = rustix::fs::statvfs(directory).ok()?;
    Some((disk.f_blocks.saturating_mul(disk.f_frsize), disk.f_bavail.saturating_mul(disk.f_frsize)))
}

/// Appends the size and the free space of the disk of a directory, the expiry of certificates, in seconds of Unix time,
/// and the clock. Leaves out values that the operating system does not provide.
pub fn write(page: &mut Page, directory: &Path, expirations: impl Iterator<Item = (&'static str, i64)>) {
    if let Some((size, free)) = disk(directory) {
        page.gauge("flotilla_disk_size_bytes", "Size of the disk that the data directory is on, in bytes.")
            .sample(&[], size as f64);
        page.gauge("flotilla_disk_free_bytes", "Free space of that disk that this process may use, in bytes.")
            .sample(&[], free as f64);
    }
    let help = "When a certificate of this server expires, in seconds since 1970.";
    let mut samples = page.gauge("flotilla_certificate_expiration_timestamp_seconds", help);
    for (certificate, at) in expirations {
        samples.sample(&[("certificate", certificate)], at as f64);
    }
    let now = wall_clock::unix_seconds();
    let help = "The clock of this server, in seconds since 1970. Compare it with the time of the scrape.";
    page.gauge("flotilla_clock_seconds", help).sample(&[], now);
}
