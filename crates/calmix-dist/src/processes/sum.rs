//! The sum over the logical parts of a batch, with the same bits on any number of processes: see [`tree`].

use std::ops::Range;

use tch::Tensor;

use super::Processes;
use crate::error::{DistError, Operation};
use crate::tree::{self, held, longest_stretch, stretch};

const SUM: Operation = Operation::TreeSum;

impl Processes {
    /// The sum of all parts, on every process, along the tree of [`tree`].
    ///
    /// Every process holds equally many parts, neighbours in the order of ranks: with N parts and W processes rank r has
    /// r·N/W and those after it. A part is a vector; all have the same length and kind. They are used up: the sum is
    /// made in the memory of the first where that can be.
    ///
    /// # Errors
    ///
    /// When there are no parts or they differ in shape, or when a process is missing.
    pub fn tree_sum(&self, parts: Vec<Tensor>) -> Result<Tensor, DistError> {
        let Some(shape) = parts.first().map(Tensor::size) else {
            return Err(self.argument(SUM, "there are no parts to add up"));
        };
        let [length] = *shape else {
            return Err(self.argument(SUM, format!("a part has the shape {shape:?} and is no vector")));
        };
        if let Some(other) = parts.iter().map(Tensor::size).find(|size| *size != shape) {
            let what = format!("one part has {length} numbers and another the shape {other:?}");
            return Err(self.argument(SUM, what));
        }
        let _guard = tch::no_grad_guard();
        let total = parts.len() * self.size;
        let mut sums = self.inside(total, parts)?;
        if self.size == 1 {
            return sums.pop().ok_or_else(|| self.argument(SUM, "the tree has no root"));
        }
        let ours = self.scatter(total, length, &sums)?;
        drop(sums);
        let each = longest_stretch(length, self.size);
        let own = stretch(length, self.rank, self.size);
        // Stretches at the end are shorter; in the gathering all have the same length.
        let ours = match each - (own.end - own.start) {
            0 => ours,
            lacking => ours.f_constant_pad_nd([0, lacking])?,
        };
        Ok(self.gather_flat(SUM, &ours)?.f_narrow(0, 0, length)?)
    }

    /// The sums of the largest subtrees among our own parts.
    fn inside(&self, total: usize, parts: Vec<Tensor>) -> Result<Vec<Tensor>, DistError> {
        let held = held(total, self.rank, self.size);
        let mut parts = parts.into_iter();
        let sums = tree::subtrees(total, &held).into_iter().map(|subtree| {
            let inside = parts.by_ref().take(subtree.len()).enumerate();
            let leaves = inside.map(|(at, part)| (at..at + 1, part)).collect();
            // A subtree over n parts has the shape of the tree over n parts.
            self.add_up(subtree.len(), leaves)
        });
        sums.collect()
    }

    /// Sends everybody their stretch of our sums, and adds up our own stretch of everybody's.
    fn scatter(&self, total: usize, length: i64, sums: &[Tensor]) -> Result<Tensor, DistError> {
        let subtrees: Vec<_> =
            (0..self.size).map(|rank| tree::subtrees(total, &held(total, rank, self.size))).collect();
        let stretches: Vec<Range<i64>> =
            (0..self.size).map(|rank| stretch(length, rank, self.size)).collect();
        let own = stretch(length, self.rank, self.size);
        let own = own.end - own.start;
        let lengths = |stretch: &Range<i64>| stretch.end - stretch.start;
        let send_counts: Vec<i64> = stretches.iter().map(|s| lengths(s) * sums.len() as i64).collect();
        let receive_counts: Vec<i64> = subtrees.iter().map(|theirs| own * theirs.len() as i64).collect();
        // A single sum already is what is to be sent, one stretch after the other.
        let send = if let [sum] = sums {
            sum.shallow_clone()
        } else {
            let pieces = stretches.iter().flat_map(|s| sums.iter().map(move |sum| (s, sum)));
            let pieces = pieces.map(|(s, sum)| sum.f_narrow(0, s.start, lengths(s)));
            Tensor::f_cat(&pieces.collect::<Result<Vec<_>, _>>()?, 0)?
        };
        let received = self.all_to_all_as(SUM, &send, &send_counts, &receive_counts)?;
        let leaves = subtrees
            .into_iter()
            .flatten()
            .enumerate()
            .map(|(at, subtree)| Ok((subtree, received.f_narrow(0, at as i64 * own, own)?)));
        self.add_up(total, leaves.collect::<Result<_, DistError>>()?)
    }

    fn add_up(&self, parts: usize, leaves: Vec<(Range<usize>, Tensor)>) -> Result<Tensor, DistError> {
        let sum = tree::fold(parts, leaves, |mut a, b| a.f_add_(&b))?;
        sum.ok_or_else(|| self.argument(SUM, "the parts do not cover the tree"))
    }
}
