//! A keyed permutation of `0, 1, …, len − 1` in constant memory.
//!
//! Long streams: a Feistel network over Z_a × Z_b with a·b just above `len`, and cycle walking: a value that
//! falls outside is sent through again until it falls inside (Black and Rogaway, "Ciphers with arbitrary finite
//! domains", 2002). As a·b − len < a ≈ √len, that almost never happens.
//!
//! Short streams: a network over a few values does not reach all their orders equally, so up to
//! [`MAX_TABLE_LENGTH`] samples are shuffled by Fisher and Yates into a table: 8 KB at most, whatever the run.

use std::num::NonZeroU64;

use crate::rng::Stream;

/// The longest stream that is shuffled into a table.
pub(super) const MAX_TABLE_LENGTH: u64 = 4096;

/// Five rounds are proven secure for fewer than √len queries (Patarin, 2004). An epoch queries all values, which no
/// proof covers: the tests of uniformity fail at two rounds and pass from four.
const ROUNDS: usize = 8;

#[derive(Debug, Clone)]
pub(super) enum Permutation {
    Table(Box<[u16]>),
    Feistel(Feistel),
}

impl Permutation {
    /// Draws a random permutation of `len` values.
    pub(super) fn draw(len: NonZeroU64, stream: &mut Stream) -> Self {
        if len.get() > MAX_TABLE_LENGTH {
            return Self::Feistel(Feistel::draw(len, stream));
        }
        let mut table: Box<[u16]> = (0..len.get() as u16).collect();
        stream.shuffle(&mut table);
        Self::Table(table)
    }

    /// Returns the image of `place`, which must be below `len`.
    pub(super) fn at(&self, place: u64) -> u64 {
        match self {
            Self::Table(table) => u64::from(table[place as usize]),
            Self::Feistel(network) => network.at(place),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Feistel {
    len: u64,
    rows: u64,
    columns: u64,
    keys: [u64; ROUNDS],
}

impl Feistel {
    fn draw(len: NonZeroU64, stream: &mut Stream) -> Self {
        let len = len.get();
        let root = len.isqrt();
        let rows = root + u64::from(root * root < len);
        // The product may be 2⁶⁴ and is never computed; each factor is at most 2³².
        let columns = len.div_ceil(rows);
        // 128 random bits, spread: a block of the generator for each round would take longer than the rounds.
        let (first, step) = (stream.next_u64(), stream.next_u64() | 1);
        let keys = std::array::from_fn(|n| mix(first.wrapping_add(step.wrapping_mul(n as u64))));
        Self { len, rows, columns, keys }
    }

    fn at(&self, place: u64) -> u64 {
        let mut value = self.pass(place);
        while value >= self.len {
            value = self.pass(value);
        }
        value
    }

    fn pass(&self, value: u64) -> u64 {
        let (mut row, mut column) = (value / self.columns, value % self.columns);
        for keys in self.keys.as_chunks::<2>().0 {
            row = add(row, below(mix(column ^ keys[0]), self.rows), self.rows);
            column = add(column, below(mix(row ^ keys[1]), self.columns), self.columns);
        }
        row * self.columns + column
    }
}

/// Computes `a + b` modulo `modulus`, for both below it.
fn add(a: u64, b: u64, modulus: u64) -> u64 {
    let sum = a + b;
    if sum >= modulus { sum - modulus } else { sum }
}

/// Maps 64 random bits to a number below `bound`; the bias is below 2⁻³² for the bounds here.
fn below(bits: u64, bound: u64) -> u64 {
    ((u128::from(bits) * u128::from(bound)) >> 64) as u64
}

/// Evensen's "moremur": a finaliser that turns consecutive numbers into bits that pass as random.
fn mix(mut x: u64) -> u64 {
    x ^= x >> 27;
    x = x.wrapping_mul(0x3C79_AC49_2BA7_B653);
    x ^= x >> 33;
    x = x.wrapping_mul(0x1C69_B3F7_4AC4_AE35);
    x ^ x >> 27
}

#[cfg(test)]
mod tests {
    use crate::rng::{Domain, Seed};

    use super::*;

    #[test]
    fn a_network_is_a_permutation_of_any_length() {
        for len in (1..300).chain([4095, 4096, 4097, 5000, 10_007]) {
            let mut stream = Seed(3).stream(Domain::UnlabelledOrder, 0, len);
            let network = Feistel::draw(NonZeroU64::new(len).unwrap(), &mut stream);
            let mut is_used = vec![false; len as usize];
            for place in 0..len {
                let value = network.at(place) as usize;
                assert!(!is_used[value], "{value} twice at length {len}");
                is_used[value] = true;
            }
        }
    }

    #[test]
    fn a_network_covers_the_whole_range_of_positions() {
        for len in [1 << 40, (1 << 40) + 1, u64::MAX - 1, u64::MAX] {
            let mut stream = Seed(3).stream(Domain::UnlabelledOrder, 0, len);
            let network = Feistel::draw(NonZeroU64::new(len).unwrap(), &mut stream);
            let mut values: Vec<u64> =
                (0..500).flat_map(|i| [i, len / 2 + i, len - 1 - i]).map(|place| network.at(place)).collect();
            values.sort_unstable();
            assert!(values.windows(2).all(|pair| pair[0] < pair[1]) && values[1499] < len);
            // 1,500 uniform values: the chance that all miss a tenth at either end is 0.9^1500.
            assert!(values[0] < len / 10 && values[1499] > len / 10 * 9);
        }
    }
}
