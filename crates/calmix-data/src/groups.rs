//! Groups of samples that are not independent of each other: those of one patient, video, site or writer.
//!
//! The user names them in a column `group` of the labels, or by a level of folders. A split that calmix draws never
//! separates the samples of a group. A sample without a group forms its own group.

use std::collections::HashMap;

/// Marks a sample without a group in the table.
pub const NO_GROUP: u32 = u32::MAX;

/// Numbers the groups of these samples from 0, in order of first occurrence. A sample without a group gets its own number.
/// Returns an empty list if no two samples share a group.
///
/// ```
/// use calmix_data::groups::group_numbers;
///
/// assert_eq!(group_numbers(&[Some(7), None, Some(2), Some(7)]), [0, 1, 2, 0]);
/// assert!(group_numbers(&[Some(7), None, Some(2), None]).is_empty());
/// ```
pub fn group_numbers(groups: &[Option<u32>]) -> Vec<u32> {
    let mut known: HashMap<u32, u32> = HashMap::new();
    let mut numbers = Vec::with_capacity(groups.len());
    let mut next = 0;
    for group in groups {
        let number = match group {
            Some(group) => *known.entry(*group).or_insert(next),
            None => next,
        };
        next = next.max(number + 1);
        numbers.push(number);
    }
    if next as usize == numbers.len() { Vec::new() } else { numbers }
}

/// Returns the number of distinct groups of `samples` samples with these [`group_numbers`].
pub fn group_count(numbers: &[u32], samples: usize) -> u64 {
    // The numbers are dense.
    numbers.iter().max().map_or(samples as u64, |&last| u64::from(last) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_first_sample() {
        let numbers = group_numbers(&[None, Some(5), Some(0), Some(5), None]);
        assert_eq!((numbers.as_slice(), group_count(&numbers, 5)), ([0, 1, 2, 1, 3].as_slice(), 4));
        assert_eq!(group_count(&[], 3), 3);
        assert_eq!(group_numbers(&[Some(3), Some(3)]), [0, 0]);
        assert!(group_numbers(&[]).is_empty());
        assert!(group_numbers(&[None, Some(1), Some(0)]).is_empty());
    }
}
