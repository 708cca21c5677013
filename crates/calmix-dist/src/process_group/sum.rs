//! The sum of the gradients of all micro-batches, with the same bits on any number of processes: see [`tree`].

use std::ops::Range;

use tch::Tensor;

use super::ProcessGroup;
use crate::error::{DistError, Operation};
use crate::tree::{self, PartialSums, held, stretch};

const SUM: Operation = Operation::TreeSum;

impl ProcessGroup {
    /// Adds `all` terms along the [`tree`]; `terms` are those of this rank. Every rank receives the sum.
    pub fn tree_sum(&self, all: usize, terms: Vec<Tensor>) -> Result<Tensor, DistError> {
        let mut sums = self.begin_sum(all);
        for term in terms {
            self.add_to_sum(&mut sums, term)?;
        }
        self.finish_sum(sums)
    }

    /// Begins a sum of `all` terms, to which every rank adds those that it [holds](held), in order.
    pub fn begin_sum(&self, all: usize) -> PartialSums<Tensor> {
        PartialSums::new(all, held(all, self.rank, self.size).start)
    }

    /// Adds the next term of this rank, a vector, and consumes it: a sum reuses the memory of its first term.
    ///
    /// # Errors
    ///
    /// If the term is not a vector, or its length differs from that of the earlier terms.
    pub fn add_to_sum(&self, sums: &mut PartialSums<Tensor>, term: Tensor) -> Result<(), DistError> {
        let _guard = tch::no_grad_guard();
        let shape = term.size();
        let [length] = *shape else {
            return Err(self.argument(SUM, format!("a term has the shape {shape:?}, expected a vector")));
        };
        if let Some(other) = sums.subtrees().first().map(|(_, sum)| sum.size()).filter(|size| *size != shape)
        {
            let what = format!("one term has {length} numbers, but another has the shape {other:?}");
            return Err(self.argument(SUM, what));
        }
        Ok(sums.push(term, |mut a, b| a.f_add_(&b))?)
    }

    /// Adds the partial sums of all ranks; every rank receives the sum.
    ///
    /// # Errors
    ///
    /// If this rank has not added exactly the terms that it holds, or a process is missing.
    pub fn finish_sum(&self, sums: PartialSums<Tensor>) -> Result<Tensor, DistError> {
        let _guard = tch::no_grad_guard();
        let total = sums.terms();
        let mut sums = self.local_sums(sums)?;
        let Some(length) = sums.first().map(|sum| sum.numel() as i64) else {
            return Err(self.argument(SUM, "there are no terms to add up"));
        };
        if self.size == 1 {
            return sums.pop().ok_or_else(|| self.argument(SUM, "the tree has no root"));
        }
        let copies = self.scatter(total, length, &sums)?;
        let lengths: Vec<i64> =
            (0..self.size).map(|rank| length_of(&stretch(length, rank, self.size))).collect();
        let receive = vec![lengths.get(self.rank).copied().unwrap_or_default(); self.size];
        // The sums that were sent are no longer needed, so the result reuses their memory.
        let mut whole = match sums.into_iter().next() {
            Some(sum) if sum.is_contiguous() => sum,
            _ => Tensor::f_empty([length], (copies.kind(), copies.device()))?,
        };
        self.all_to_all_into(SUM, &mut whole, &copies, &receive, &lengths)?;
        Ok(whole)
    }

    /// Adds the partial sums of all ranks by c10d's all-reduce, which sends less between hosts; every rank receives the sum.
    ///
    /// The bits are the same on every rank, but depend on the number of ranks and on c10d's algorithm.
    pub fn all_reduce_sums(&self, sums: PartialSums<Tensor>) -> Result<Tensor, DistError> {
        let _guard = tch::no_grad_guard();
        let mut sums = self.local_sums(sums)?.into_iter();
        let Some(mut whole) = sums.next() else {
            return Err(self.argument(SUM, "there are no terms to add up"));
        };
        for sum in sums {
            let _ = whole.f_add_(&sum)?;
        }
        self.all_reduce_sum(&mut whole)?;
        Ok(whole)
    }

    /// Returns the partial sums of this rank, in the order of its terms.
    fn local_sums(&self, sums: PartialSums<Tensor>) -> Result<Vec<Tensor>, DistError> {
        let total = sums.terms();
        // The other ranks compute from the held terms how much this rank sends, so the terms must be complete.
        if !sums.has_all(&held(total, self.rank, self.size)) {
            return Err(self.argument(SUM, format!("these are not this rank's terms of {total}")));
        }
        Ok(sums.into_subtrees().into_iter().map(|(_, sum)| sum).collect())
    }

    /// Sends each rank its stretch of this rank's sums, and receives this rank's stretch of all sums. Returns the total of the
    /// stretch, repeated for each rank.
    fn scatter(&self, total: usize, length: i64, sums: &[Tensor]) -> Result<Tensor, DistError> {
        let subtrees: Vec<_> =
            (0..self.size).map(|rank| tree::subtrees(total, &held(total, rank, self.size))).collect();
        let stretches: Vec<Range<i64>> =
            (0..self.size).map(|rank| stretch(length, rank, self.size)).collect();
        let local = length_of(&stretch(length, self.rank, self.size));
        let send_counts: Vec<i64> = stretches.iter().map(|s| length_of(s) * sums.len() as i64).collect();
        let receive_counts: Vec<i64> =
            subtrees.iter().map(|subtrees| local * subtrees.len() as i64).collect();
        // A single sum already has the stretches in order of rank.
        let send = if let [sum] = sums {
            sum.shallow_clone()
        } else {
            let pieces = stretches.iter().flat_map(|s| sums.iter().map(move |sum| (s, sum)));
            let pieces = pieces.map(|(s, sum)| sum.f_narrow(0, s.start, length_of(s)));
            Tensor::f_cat(&pieces.collect::<Result<Vec<_>, _>>()?, 0)?
        };
        let received = self.all_to_all_as(SUM, &send, &send_counts, &receive_counts)?;
        let subtrees: Vec<Range<usize>> = subtrees.into_iter().flatten().collect();
        let sum = if is_complete(&subtrees) {
            add_levels(&received, subtrees.len() as i64, local)?
        } else {
            let leaves = (subtrees.into_iter().enumerate())
                .map(|(at, subtree)| Ok((subtree, received.f_narrow(0, at as i64 * local, local)?)));
            self.add_up(total, leaves.collect::<Result<_, DistError>>()?)?
        };
        // The sum is at the start of `received`, which is at least as long as the copies.
        let size = self.size as i64;
        let copies = received.f_narrow(0, 0, size * local)?;
        let others = copies.f_narrow(0, local, (size - 1) * local)?.f_view([size - 1, local])?;
        others.shallow_clone().f_copy_(&sum)?;
        Ok(copies)
    }

    fn add_up(&self, terms: usize, leaves: Vec<(Range<usize>, Tensor)>) -> Result<Tensor, DistError> {
        let sum = tree::fold(terms, leaves, |mut a, b| a.f_add_(&b))?;
        sum.ok_or_else(|| self.argument(SUM, "the terms do not cover the tree"))
    }
}

/// Returns whether subtrees that cover a tree are all on one level of a complete tree.
fn is_complete(subtrees: &[Range<usize>]) -> bool {
    let terms = subtrees.first().map_or(0, Range::len);
    subtrees.len().is_power_of_two() && subtrees.iter().all(|subtree| subtree.len() == terms)
}

/// Adds `rows` vectors along a complete tree into the first. One operation per level: one per pair would mean many kernel
/// launches on a GPU.
fn add_levels(received: &Tensor, rows: i64, length: i64) -> Result<Tensor, DistError> {
    let mut level = received.f_narrow(0, 0, rows * length)?.f_view([rows, length])?;
    let mut rows = rows;
    while rows > 1 {
        rows /= 2;
        let pairs = level.f_view([rows, 2, length])?;
        let mut left = pairs.f_select(1, 0)?;
        let _ = left.f_add_(&pairs.f_select(1, 1)?)?;
        level = left;
    }
    Ok(level.f_select(0, 0)?)
}

fn length_of(stretch: &Range<i64>) -> i64 {
    stretch.end - stretch.start
}
