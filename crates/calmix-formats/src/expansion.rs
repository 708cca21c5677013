//! Limits on how far compressed bytes may expand before they count as a decompression bomb.

/// Raw photos and digits compress less than tenfold; deflate can expand 1,032-fold.
const MAX_RATIO: u64 = 100;

/// Smaller results are always accepted: a short file with few distinct values may well compress a thousandfold.
const MIN_CHECKED_BYTES: u64 = 16 << 20;

/// Returns whether `packed` compressed bytes may plausibly expand to `unpacked` bytes.
pub fn is_plausible(packed: u64, unpacked: u64) -> bool {
    unpacked <= MIN_CHECKED_BYTES.max(packed.saturating_mul(MAX_RATIO))
}

/// Returns whether files of `packed` bytes may plausibly hold vectors of `unpacked` bytes. Vectors with few distinct values,
/// such as molecular fingerprints, compress a hundredfold and more. Blocks bound the memory; this protects the disk.
pub(crate) fn is_plausible_for_vectors(packed: u64, unpacked: u64) -> bool {
    unpacked <= packed.saturating_mul(1000).max(64 << 20)
}
