//! What damage does to bytes.

use calmix_core::rng::Stream;

/// Numbers at which lengths and counts go wrong.
const TELLING: [u64; 14] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0xffff,
    0x0001_0000,
    0x0100_0000,
    0x7fff_ffff,
    0xffff_ffff,
    u64::MAX,
];

/// Damages `bytes` in up to four places.
///
/// `marks` are the words of the format: one may be put where none belongs, or in the place of another. Pieces of
/// `other`, a sound file of the same format, may be spliced in.
pub(crate) fn mutate(bytes: &mut Vec<u8>, other: &[u8], marks: &[&[u8]], stream: &mut Stream) {
    for _ in 0..=stream.index(4) {
        if bytes.is_empty() {
            return;
        }
        let at = place(bytes.len(), stream);
        match stream.index(10) {
            0 => bytes[at] ^= 1 << stream.index(8),
            1 => bytes[at] = stream.next_u32() as u8,
            2 => write_number(bytes, at, stream),
            3 => write_mark(bytes, at, marks[stream.index(marks.len())]),
            4 => drop(bytes.splice(at..at, marks[stream.index(marks.len())].iter().copied())),
            5 => wrong_mark(bytes, marks, stream),
            6 => {
                let range = piece(bytes.len(), stream);
                let piece = bytes[range].to_vec();
                bytes.splice(at..at, piece);
            }
            7 if !other.is_empty() => {
                let piece = other[piece(other.len(), stream)].to_vec();
                let end = bytes.len().min(at + piece.len());
                bytes.splice(at..end, piece);
            }
            8 => drop(bytes.drain(piece(bytes.len(), stream))),
            _ if stream.index(3) == 0 => bytes.truncate(at),
            _ => bytes[at] = bytes[at].wrapping_add(if stream.index(2) == 0 { 1 } else { 255 }),
        }
    }
}

/// A place in a file, as often among its first bytes, where headers are, as anywhere.
fn place(length: usize, stream: &mut Stream) -> usize {
    if stream.index(2) == 0 { stream.index(length.min(128)) } else { stream.index(length) }
}

/// A piece of up to 64 bytes, now and then of any length.
fn piece(length: usize, stream: &mut Stream) -> std::ops::Range<usize> {
    let start = stream.index(length);
    let longest = if stream.index(8) == 0 { length } else { 64 };
    start..length.min(start + 1 + stream.index(longest))
}

/// A length or a count, of two, four or eight bytes in either order, or in digits, that is not what it was.
fn write_number(bytes: &mut [u8], at: usize, stream: &mut Stream) {
    let telling = TELLING[stream.index(TELLING.len())];
    let number = if stream.index(4) == 0 { bytes.len() as u64 ^ 1 } else { telling };
    let width = [2, 4, 8][stream.index(3)];
    let at = if stream.index(2) == 0 { at - at % width } else { at };
    match stream.index(5) {
        0 | 1 => write_mark(bytes, at, &number.to_le_bytes()[..width]),
        2 | 3 => write_mark(bytes, at, &number.to_be_bytes()[8 - width..]),
        _ => write_mark(bytes, at, format!("{number:011o}").as_bytes()),
    }
}

fn write_mark(bytes: &mut [u8], at: usize, mark: &[u8]) {
    bytes[at..].iter_mut().zip(mark).for_each(|(byte, &mark)| *byte = mark);
}

/// Puts one mark where another stands.
fn wrong_mark(bytes: &mut [u8], marks: &[&[u8]], stream: &mut Stream) {
    let (from, to) = (marks[stream.index(marks.len())], marks[stream.index(marks.len())]);
    let found: Vec<usize> = bytes
        .windows(from.len())
        .enumerate()
        .filter(|(_, window)| *window == from)
        .map(|(at, _)| at)
        .collect();
    if !found.is_empty() {
        write_mark(bytes, found[stream.index(found.len())], to);
    }
}
