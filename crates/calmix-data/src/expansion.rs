//! How far compressed bytes may expand before they count as a decompression bomb.

/// Raw photographs and digits compress less than tenfold; deflate can expand 1,032-fold.
const RATIO: u64 = 100;

/// Below this nothing is refused: a short file of few values may well compress a thousandfold.
const ALWAYS: u64 = 16 << 20;

/// Whether `packed` compressed bytes may plausibly expand to `unpacked` bytes.
pub(crate) fn is_plausible(packed: u64, unpacked: u64) -> bool {
    unpacked <= ALWAYS.max(packed.saturating_mul(RATIO))
}
