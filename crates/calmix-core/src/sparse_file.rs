//! Files that are nearly all holes: they cost their maker nothing, and their reader minutes and memory.
//!
//! No file is touched here: the caller asks the system, and this decides.

/// Bytes from which on a file is looked at: reading less of nothing hurts nobody.
const FROM: u64 = 16 << 20;

/// A file that holds anything takes up at least this part of its length, also where the file system compresses.
const LEAST: u64 = 1_024;

/// Whether a file of `length` bytes that takes up `stored` bytes is nearly all holes.
///
/// Some network file systems count no bytes at all. There a file says by its beginning whether it is one of zeros.
///
/// ```
/// use calmix_core::sparse_file::is_hollow;
///
/// let (file, mib) = (1 << 30, 1 << 20);
/// assert!(is_hollow(file, 4_096, || false));
/// assert!(!is_hollow(file, mib, || true) && !is_hollow(mib, 0, || true));
/// // Nothing is stored: zeros on this disk, or a disk that does not count.
/// assert!(is_hollow(file, 0, || true) && !is_hollow(file, 0, || false));
/// ```
pub fn is_hollow(length: u64, stored: u64, begins_with_zeros: impl FnOnce() -> bool) -> bool {
    length >= FROM && stored.saturating_mul(LEAST) < length && (stored > 0 || begins_with_zeros())
}
