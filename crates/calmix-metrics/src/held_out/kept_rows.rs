//! Which held-out labels a model stores, if there are too many.

use calmix_core::rng::{Domain, Seed};

use crate::groups::rows_of_groups;

/// Draws at most `most` rows; returns them ascending. Their ids decide which.
///
/// Groups are drawn with the same probability, whatever their size: as many rows of each as there is room for, or, if there
/// are more groups than rows, one row of some of the groups. The weight of a group does not depend on how many of its rows
/// are stored.
pub(super) fn kept_rows(ids: &[u64], groups: &[u32], most: usize) -> Vec<usize> {
    let key = |row: usize| (Seed(0).stream(Domain::Conformal, 0, ids[row]).next_u64(), ids[row]);
    let mut rows: Vec<usize> = (0..ids.len()).collect();
    if rows.len() <= most {
        return rows;
    }
    if groups.is_empty() {
        rows.sort_by_cached_key(|&row| key(row));
        rows.truncate(most);
    } else {
        let mut of_groups = rows_of_groups(groups, ids.len());
        let each = (most / of_groups.len().max(1)).max(1);
        for rows in &mut of_groups {
            rows.sort_by_cached_key(|&row| key(row));
            rows.truncate(each);
        }
        // Not by the lowest key of a group, which is lower the more rows it has.
        of_groups.sort_by_cached_key(|rows| {
            let group = rows.first().and_then(|&row| groups.get(row)).copied().unwrap_or_default();
            (Seed(0).stream(Domain::Group, 1, u64::from(group)).next_u64(), group)
        });
        rows = of_groups.into_iter().flatten().take(most).collect();
    }
    rows.sort_unstable();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_drawn_whatever_their_size() {
        // Group 0 has half of the rows, the others one each.
        let groups: Vec<u32> = (0..200).map(|row| if row < 100 { 0 } else { row - 99 }).collect();
        let mut largest = 0;
        for draw in 0..400_u64 {
            let ids: Vec<u64> = (0..200).map(|row| 1_000 * draw + row).collect();
            let shifted: Vec<u32> = groups.iter().map(|group| group + 1_000 * draw as u32).collect();
            let rows = kept_rows(&ids, &shifted, 20);
            assert!(rows.len() == 20 && rows.is_sorted());
            let of_largest = rows.iter().filter(|&&row| row < 100).count();
            assert!(of_largest <= 1, "{of_largest}");
            largest += of_largest;
        }
        // 20 of 101 groups: 79 of 400 draws, with a standard deviation of 8.
        assert!((55..=103).contains(&largest), "{largest}");
    }

    #[test]
    fn few_groups_share_the_room() {
        let groups: Vec<u32> = (0..300).map(|row| row % 3).collect();
        let ids: Vec<u64> = (0..300).collect();
        let rows = kept_rows(&ids, &groups, 20);
        for group in 0..3 {
            assert_eq!(rows.iter().filter(|&&row| groups[row] == group).count(), 6);
        }
    }
}
