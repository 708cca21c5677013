//! Rows in the order of confidence, equal ones together.

/// Rows in the ascending order of confidence, in runs of equal ones.
#[derive(Debug, Clone)]
pub(super) struct Ties {
    rows: Vec<usize>,
    /// Where each run ends.
    ends: Vec<usize>,
}

impl Ties {
    pub(super) fn new(confidence: &[f64]) -> Self {
        let mut rows: Vec<usize> = (0..confidence.len()).collect();
        rows.sort_by(|&i, &j| confidence[i].total_cmp(&confidence[j]));
        let equal = |i: &usize, j: &usize| confidence[*i] == confidence[*j];
        let ends = rows.chunk_by(equal).scan(0, |end, run| {
            *end += run.len();
            Some(*end)
        });
        Self { ends: ends.collect(), rows }
    }

    /// The rows of every run, from the least confidence up.
    pub(super) fn runs(&self) -> impl DoubleEndedIterator<Item = &[usize]> {
        (0..self.ends.len()).map(|run| {
            let from = if run == 0 { 0 } else { self.ends[run - 1] };
            &self.rows[from..self.ends[run]]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_confidences_are_one_run() {
        let runs =
            |confidence: &[f64]| Ties::new(confidence).runs().map(<[usize]>::to_vec).collect::<Vec<_>>();
        assert_eq!(runs(&[0.5, 0.9, 0.5, 0.1]), [vec![3], vec![0, 2], vec![1]]);
        assert_eq!(runs(&[0.0, -0.0]), [[1, 0]]);
        assert!(runs(&[]).is_empty());
    }
}
