//! A fixed order of addition for any number of processes.
//!
//! Floating-point addition depends on its order. So N terms, such as the gradients of micro-batches, are always added along the
//! same binary tree: the left child of a node over `len` terms has the largest power of two below `len`, the right child the
//! rest. Each of W ≤ N processes holds some consecutive terms ([`held`]) and adds the largest subtrees among them. Each rank then
//! owns a stretch of the vector, in which it adds the subtrees of all ranks, again along the tree. Every addition is one of the
//! tree's, so the bits are the same for every W.
//!
//! If N and W are powers of two, every rank has one subtree and sends 2·P·(W−1)/W numbers for a vector of length P, as much as in
//! a ring all-reduce. Other numbers cost more: six terms on three processes need up to twice that.

use std::ops::Range;

/// Returns how many of `len` > 1 terms are in the left subtree.
fn left(len: usize) -> usize {
    len.next_power_of_two() / 2
}

/// Returns the largest subtrees of the tree over `terms` terms that are inside `held`, from left to right.
///
/// ```
/// // ((0 1) (2 3)) (4 5): of three processes the middle one has half of the left tree.
/// assert_eq!(calmix_dist::tree::subtrees(6, &(2..4)), [2..4]);
/// assert_eq!(calmix_dist::tree::subtrees(6, &(0..3)), [0..2, 2..3]);
/// ```
pub fn subtrees(terms: usize, held: &Range<usize>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    collect(0..terms, held, &mut found);
    found
}

fn collect(node: Range<usize>, held: &Range<usize>, found: &mut Vec<Range<usize>>) {
    if node.start >= node.end || node.end <= held.start || held.end <= node.start {
        return;
    }
    if held.start <= node.start && node.end <= held.end {
        found.push(node);
        return;
    }
    let middle = node.start + left(node.len());
    collect(node.start..middle, held, found);
    collect(middle..node.end, held, found);
}

/// Adds along the tree over `terms` terms, given the sums of subtrees that cover it, from left to right.
///
/// Returns `None` if the subtrees do not cover the tree, or if there are no terms.
///
/// # Errors
///
/// The first error of `add`.
pub fn fold<T, E>(
    terms: usize,
    leaves: Vec<(Range<usize>, T)>,
    mut add: impl FnMut(T, T) -> Result<T, E>,
) -> Result<Option<T>, E> {
    let mut leaves = leaves.into_iter().peekable();
    let sum = node(0..terms, &mut leaves, &mut add)?;
    Ok(sum.filter(|_| leaves.peek().is_none()))
}

type SubtreeSums<T> = std::iter::Peekable<std::vec::IntoIter<(Range<usize>, T)>>;

fn node<T, E>(
    at: Range<usize>,
    leaves: &mut SubtreeSums<T>,
    add: &mut impl FnMut(T, T) -> Result<T, E>,
) -> Result<Option<T>, E> {
    if let Some((_, sum)) = leaves.next_if(|(leaf, _)| *leaf == at) {
        return Ok(Some(sum));
    }
    if at.len() < 2 {
        return Ok(None);
    }
    let middle = at.start + left(at.len());
    let Some(first) = node(at.start..middle, leaves, add)? else { return Ok(None) };
    let Some(second) = node(middle..at.end, leaves, add)? else { return Ok(None) };
    add(first, second).map(Some)
}

/// Partial sums of consecutive terms, added along the tree as the terms arrive. Of N terms, it stores at most 1 + log₂ N sums.
///
/// ```
/// let mut sums = calmix_dist::tree::PartialSums::new(4, 0);
/// for term in [0.1_f32, 0.2, 0.3, 0.4] {
///     sums.push(term, |a, b| Ok::<_, std::convert::Infallible>(a + b))?;
/// }
/// assert_eq!(sums.subtrees(), &[(0..4, (0.1 + 0.2) + (0.3 + 0.4))]);
/// # Ok::<(), std::convert::Infallible>(())
/// ```
#[derive(Debug)]
pub struct PartialSums<T> {
    terms: usize,
    next: usize,
    sums: Vec<(Range<usize>, T)>,
}

impl<T> PartialSums<T> {
    /// Creates empty sums that start at term `first` of the tree's `terms` terms.
    pub fn new(terms: usize, first: usize) -> Self {
        Self { terms, next: first, sums: Vec::new() }
    }

    /// Adds the next term along the tree.
    ///
    /// # Errors
    ///
    /// The first error of `add`.
    pub fn push<E>(&mut self, term: T, mut add: impl FnMut(T, T) -> Result<T, E>) -> Result<(), E> {
        let (mut at, mut sum) = (self.next..self.next + 1, term);
        self.next += 1;
        while let Some((left, first)) =
            self.sums.pop_if(|(left, _)| is_node(0..self.terms, left.start, at.start, at.end))
        {
            (at, sum) = (left.start..at.end, add(first, sum)?);
        }
        self.sums.push((at, sum));
        Ok(())
    }

    /// Returns the number of terms of the tree.
    pub fn terms(&self) -> usize {
        self.terms
    }

    /// Returns whether exactly the terms of `held` were added.
    pub fn has_all(&self, held: &Range<usize>) -> bool {
        let first = self.sums.first().map_or(self.next, |(first, _)| first.start);
        (first..self.next) == *held
    }

    /// Returns the sums of the largest subtrees among the terms so far, from left to right.
    pub fn subtrees(&self) -> &[(Range<usize>, T)] {
        &self.sums
    }

    /// Consumes the sums and returns those of [`subtrees`](Self::subtrees).
    pub fn into_subtrees(self) -> Vec<(Range<usize>, T)> {
        self.sums
    }
}

/// Returns whether a node below `node` has the children `start..middle` and `middle..end`.
fn is_node(node: Range<usize>, start: usize, middle: usize, end: usize) -> bool {
    if node.len() < 2 || start < node.start || end > node.end {
        return false;
    }
    let split = node.start + left(node.len());
    if (node.start, split, node.end) == (start, middle, end) {
        return true;
    }
    is_node(node.start..split, start, middle, end) || is_node(split..node.end, start, middle, end)
}

/// Returns the consecutive terms that a rank holds. Ranks differ by at most one term, so a rank has none only if there are more
/// ranks than terms.
///
/// ```
/// let held: Vec<_> = (0..3).map(|rank| calmix_dist::tree::held(4, rank, 3)).collect();
/// assert_eq!(held, [0..1, 1..2, 2..4]);
/// ```
pub fn held(terms: usize, rank: usize, size: usize) -> Range<usize> {
    let size = size.max(1);
    terms * rank / size..terms * (rank + 1) / size
}

/// Returns the stretch of a vector that a rank adds. All have equal lengths, except at the end.
pub(crate) fn stretch(length: i64, rank: usize, size: usize) -> Range<i64> {
    let each = length.unsigned_abs().div_ceil(size as u64) as i64;
    let start = (each * rank as i64).min(length);
    start..(start + each).min(length)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    /// The definition.
    fn plain(terms: &[f32]) -> f32 {
        if let [one] = terms {
            return *one;
        }
        let (first, second) = terms.split_at(left(terms.len()));
        plain(first) + plain(second)
    }

    fn along(terms: usize, leaves: Vec<(Range<usize>, f32)>) -> f32 {
        fold::<_, Infallible>(terms, leaves, |a, b| Ok(a + b)).expect("infallible").expect("covered")
    }

    /// As `size` processes add: subtrees first, the rest by one of them.
    fn across(terms: &[f32], size: usize) -> f32 {
        let whole = (0..size).flat_map(|rank| {
            let held = held(terms.len(), rank, size);
            let mut sums = PartialSums::new(terms.len(), held.start);
            for term in &terms[held.clone()] {
                sums.push(*term, |a, b| Ok::<_, Infallible>(a + b)).expect("infallible");
                assert!(sums.subtrees().len() <= 1 + terms.len().ilog2() as usize);
            }
            let ranges: Vec<_> = sums.subtrees().iter().map(|(range, _)| range.clone()).collect();
            assert_eq!(ranges, subtrees(terms.len(), &held));
            sums.into_subtrees()
        });
        along(terms.len(), whole.collect())
    }

    proptest! {
        #[test]
        fn every_number_of_processes_gives_the_bits_of_the_definition(
            terms in prop::collection::vec(-1e3_f32..1e3, 1..=16),
        ) {
            for size in 1..=terms.len() {
                prop_assert_eq!(across(&terms, size).to_bits(), plain(&terms).to_bits());
            }
        }
    }

    #[test]
    fn subtrees_cover_the_tree_without_overlap() {
        for terms in 1..=16 {
            for size in 1..=terms {
                let all: Vec<_> =
                    (0..size).flat_map(|rank| subtrees(terms, &held(terms, rank, size))).collect();
                let covered: Vec<usize> = all.iter().cloned().flatten().collect();
                assert_eq!(covered, (0..terms).collect::<Vec<_>>(), "{size} of {terms}");
                if terms.is_power_of_two() && size.is_power_of_two() {
                    assert_eq!(all.len(), size, "one subtree each, {size} of {terms}");
                }
            }
        }
    }

    #[test]
    #[allow(clippy::single_range_in_vec_init)]
    fn awkward_numbers_have_the_subtrees_one_draws_on_paper() {
        let of = |terms, size| -> Vec<_> {
            (0..size).map(|rank| subtrees(terms, &held(terms, rank, size))).collect()
        };
        assert_eq!(of(6, 2), [vec![0..2, 2..3], vec![3..4, 4..6]]);
        assert_eq!(of(6, 3), [[0..2], [2..4], [4..6]]);
        assert_eq!(of(4, 3), [vec![0..1], vec![1..2], vec![2..4]]);
        assert_eq!(of(7, 3), [vec![0..2], vec![2..4], vec![4..7]]);
        assert_eq!(of(5, 2), [vec![0..2], vec![2..4, 4..5]]);
        assert_eq!(of(12, 2), [vec![0..4, 4..6], vec![6..8, 8..12]]);
        assert_eq!(of(12, 3), [[0..4], [4..8], [8..12]]);
        assert_eq!(of(12, 4), [vec![0..2, 2..3], vec![3..4, 4..6], vec![6..8, 8..9], vec![9..10, 10..12]]);
    }

    #[test]
    fn tree_fold_needs_full_cover() {
        let sum =
            |terms, leaves| fold::<f32, Infallible>(terms, leaves, |a, b| Ok(a + b)).expect("infallible");
        assert_eq!(sum(0, vec![]), None);
        assert_eq!(sum(2, vec![(0..1, 1.0)]), None);
        assert_eq!(sum(2, vec![(0..2, 1.0), (2..3, 1.0)]), None);
        assert_eq!(sum(3, vec![(0..1, 1.0), (1..3, 1.0)]), None, "1..3 is not a subtree");
    }

    #[test]
    fn stretches_are_equal_and_cover_the_vector() {
        for length in 0..20_i64 {
            for size in 1..8 {
                let all: Vec<i64> = (0..size).flat_map(|rank| stretch(length, rank, size)).collect();
                assert_eq!(all, (0..length).collect::<Vec<_>>());
                assert!((0..size).all(|rank| {
                    let stretch = stretch(length, rank, size);
                    stretch.end - stretch.start <= length.unsigned_abs().div_ceil(size as u64) as i64
                }));
            }
        }
    }
}
