//! What a page asks for a fit: vectors, labels and settings, as one block of little-endian numbers.
//!
//! Seven `u32` come first: rows, numbers per row, classes, labels, folds, and the halves of the seed, the lower first. Then follow
//! the ids of the rows as `u64`, for each label its row, its class and whether it was chosen as `u32`, and the vectors as
//! `f32`.

use calmix_core::rng::Seed;

/// The head of a block.
const HEADER: usize = 7;
/// Numbers in memory, so that a size that a damaged page claims is refused: 64 MiB.
const MAX_NUMBERS: usize = 1 << 24;

/// A fit that the page asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The numbers of each row.
    pub width: usize,
    pub classes: usize,
    pub folds: usize,
    pub seed: Seed,
    /// The id of each row, ascending.
    pub ids: Vec<u64>,
    /// By ascending row.
    pub labels: Vec<Label>,
    /// One row after the other.
    pub vectors: Vec<f32>,
}

/// The label of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    pub row: usize,
    pub class: u32,
    /// Whether it was chosen rather than drawn at random: it is trained on, and calibrates nothing.
    pub is_chosen: bool,
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// If its sizes contradict its length, or a label names a row that is not above the one before or does not exist.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut words = bytes.chunks_exact(4).map(|word| match word {
            [a, b, c, d] => u32::from_le_bytes([*a, *b, *c, *d]),
            _ => 0,
        });
        let available = words.len();
        let mut next = || words.next().unwrap_or_default();
        let [rows, width, classes, labels, folds] = [(); 5].map(|()| next() as usize);
        let seed = join([next(), next()]);
        let numbers = rows.checked_mul(width).filter(|&numbers| numbers <= MAX_NUMBERS);
        let Some(numbers) = numbers.filter(|_| labels <= rows) else {
            return Err(format!("{rows} rows of {width} numbers with {labels} labels are too many"));
        };
        let expected = HEADER + 2 * rows + 3 * labels + numbers;
        if available != expected || !bytes.len().is_multiple_of(4) {
            return Err(format!("{} bytes, but its sizes make {}", bytes.len(), 4 * expected));
        }
        let ids = (0..rows).map(|_| join([next(), next()])).collect();
        let label = |_| Label { row: next() as usize, class: next(), is_chosen: next() != 0 };
        let labels: Vec<Label> = (0..labels).map(label).collect();
        let is_ascending = labels.is_sorted_by(|a, b| a.row < b.row);
        if !is_ascending || labels.last().is_some_and(|label| label.row >= rows) {
            return Err("the labels are not in the order of their rows, or a row does not exist".to_owned());
        }
        let vectors = words.map(f32::from_bits).collect();
        Ok(Self { width, classes, folds, seed: Seed(seed), ids, labels, vectors })
    }
}

fn join([low, high]: [u32; 2]) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three rows of two numbers with two labels, as the page writes them.
    fn words() -> Vec<u32> {
        let mut words = vec![3, 2, 4, 2, 10, 7, 1];
        words.extend([5, 0, 6, 0, 0, 1]);
        words.extend([0, 3, 1, 2, 1, 0]);
        words.extend([0.5_f32, -1.0, 0.0, 2.0, 1.5, 0.25].map(f32::to_bits));
        words
    }

    fn read(words: &[u32]) -> Result<Request, String> {
        Request::read(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
    }

    #[test]
    fn request_is_read_number_by_number() {
        let expected = Request {
            width: 2,
            classes: 4,
            folds: 10,
            seed: Seed(7 + (1 << 32)),
            ids: vec![5, 6, 1 << 32],
            labels: vec![
                Label { row: 0, class: 3, is_chosen: true },
                Label { row: 2, class: 1, is_chosen: false },
            ],
            vectors: vec![0.5, -1.0, 0.0, 2.0, 1.5, 0.25],
        };
        assert_eq!(read(&words()), Ok(expected));
    }

    #[test]
    fn sizes_that_contradict_the_length_are_refused() {
        let bytes: Vec<u8> = words().iter().flat_map(|word| word.to_le_bytes()).collect();
        for length in 0..bytes.len() {
            assert!(Request::read(&bytes[..length]).is_err(), "{length}");
        }
        assert!(Request::read(&[&bytes[..], &[0]].concat()).is_err());
        for (place, value) in [(0, u32::MAX), (0, 1 << 20), (1, u32::MAX), (3, u32::MAX), (13, 2), (16, 3)] {
            let mut damaged = words();
            damaged[place] = value;
            assert!(read(&damaged).is_err(), "{place}");
        }
    }
}
