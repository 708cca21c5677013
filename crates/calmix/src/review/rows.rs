//! Which rows a review asks for.

use std::collections::BTreeSet;

use calmix_formats::labels::drawn::Drawn;

use super::pool::Pool;

/// Why a row is in a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reason {
    /// One of the first labels: typical of many samples.
    First,
    /// Its label may be wrong.
    Check,
    /// An identical sample has another label.
    Copies,
    /// The next one of a random order of all samples.
    Random,
    /// The model is least sure of it.
    Margin,
}

impl Reason {
    /// Returns the word for the column `why`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Check => "check",
            Self::Copies => "copies",
            Self::Random => "random",
            Self::Margin => "margin",
        }
    }
}

/// A row of a review.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReviewRow {
    /// The index of the sample in the pool.
    pub(crate) sample: usize,
    pub(crate) reason: Reason,
    /// How its label counts as drawn once it is given.
    pub(crate) drawn: Drawn,
    /// The predicted class and its calibrated confidence; `None` for a random row, whose answer must not depend on them.
    pub(crate) predicted: Option<(u32, f64)>,
    /// Whether its label is known already, and only how it counts as drawn changes.
    pub(crate) is_answered: bool,
}

/// The chosen rows that a review may have, the best first, and the order for random ones.
#[derive(Debug)]
pub(crate) struct RowPlan<'a> {
    pub(crate) pool: &'a Pool,
    /// The random order of the pool.
    pub(crate) order: &'a [usize],
    /// Rows to ask for.
    pub(crate) count: usize,
    /// The share of random rows.
    pub(crate) random_share: f64,
}

/// The rows by their reason, and samples that are passed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RowCounts {
    pub(crate) first: usize,
    pub(crate) check: usize,
    pub(crate) copies: usize,
    pub(crate) random: usize,
    pub(crate) margin: usize,
    /// Chosen labels that count as random from now on, because the order has reached them.
    pub(crate) now_random: usize,
    /// Random samples that were skipped in earlier reviews.
    pub(crate) skipped: usize,
}

impl RowPlan<'_> {
    /// Returns the number of chosen rows to look for.
    pub(crate) fn chosen_count(&self) -> usize {
        self.count - ((self.count as f64 * self.random_share).round() as usize).min(self.count)
    }

    /// Takes random rows and the first chosen ones, spreads the random ones evenly, and fills up with random rows if there are too
    /// few chosen ones. A sample that is both is random: its answer must not depend on a prediction.
    pub(crate) fn rows(&self, chosen: &[ReviewRow]) -> Vec<ReviewRow> {
        let mut random_count = self.count - self.chosen_count();
        loop {
            let is_random: BTreeSet<usize> = self.unlabelled().take(random_count).collect();
            let mut seen = is_random.clone();
            let others = chosen.iter().filter(|row| seen.insert(row.sample));
            let others: Vec<ReviewRow> = others.take(self.count - random_count).cloned().collect();
            let missing = self.count - random_count - others.len();
            if missing > 0 && is_random.len() == random_count {
                random_count += missing;
                continue;
            }
            let is_chosen: BTreeSet<usize> = others.iter().map(|row| row.sample).collect();
            let (random, now_random) = self.random_rows(random_count, &is_chosen);
            let mut rows = spread(others, random);
            rows.extend(now_random);
            return rows;
        }
    }

    /// Returns the samples of the order that may become random rows.
    pub(crate) fn unlabelled(&self) -> impl Iterator<Item = usize> {
        let samples = self.order.iter().map(|&index| (index, &self.pool.samples[index]));
        let unlabelled =
            samples.filter(|(_, sample)| sample.label.is_none() && sample.drawn != Drawn::Skipped);
        unlabelled.map(|(index, _)| index)
    }

    /// Returns the next unlabelled samples of the order, and the chosen labels before the last of them: these are now a part of
    /// the random sample that the beginning of the order is.
    fn random_rows(&self, count: usize, is_chosen: &BTreeSet<usize>) -> (Vec<ReviewRow>, Vec<ReviewRow>) {
        let mut random = Vec::new();
        let mut now_random = Vec::new();
        let mut passed = Vec::new();
        for &index in self.order {
            if random.len() == count {
                break;
            }
            let sample = &self.pool.samples[index];
            let row = ReviewRow {
                sample: index,
                reason: Reason::Random,
                drawn: Drawn::Random,
                predicted: None,
                is_answered: sample.label.is_some(),
            };
            match (sample.label, sample.drawn) {
                (None, Drawn::Skipped) => {}
                (None, _) => {
                    random.push(row);
                    now_random.append(&mut passed);
                }
                // The user is about to check this label.
                (Some(_), Drawn::Chosen) if !is_chosen.contains(&index) => passed.push(row),
                (Some(_), _) => {}
            }
        }
        (random, now_random)
    }

    /// Counts the rows by their reason.
    pub(crate) fn counts(&self, rows: &[ReviewRow]) -> RowCounts {
        let mut counts = RowCounts::default();
        for row in rows {
            match row.reason {
                Reason::Random if row.is_answered => counts.now_random += 1,
                Reason::First => counts.first += 1,
                Reason::Check => counts.check += 1,
                Reason::Copies => counts.copies += 1,
                Reason::Random => counts.random += 1,
                Reason::Margin => counts.margin += 1,
            }
        }
        let samples = self.pool.samples.iter();
        counts.skipped =
            samples.filter(|sample| sample.label.is_none() && sample.drawn == Drawn::Skipped).count();
        counts
    }
}

/// Spreads the random rows evenly among the others: whoever stops early has then answered some of both.
fn spread(chosen: Vec<ReviewRow>, random: Vec<ReviewRow>) -> Vec<ReviewRow> {
    let mut rows = Vec::with_capacity(chosen.len() + random.len());
    let total = chosen.len() + random.len();
    let random_count = random.len();
    let mut chosen = chosen.into_iter();
    let mut random = random.into_iter();
    for place in 0..total {
        let is_random = (place + 1) * random_count / total > place * random_count / total;
        rows.extend(if is_random { random.next() } else { chosen.next() });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::PoolSample;

    fn pool(samples: &[(Option<u32>, Drawn)]) -> Pool {
        let sample = |(id, &(label, drawn)): (u64, &(Option<u32>, Drawn))| PoolSample {
            id,
            name: format!("{id}.jpg"),
            label,
            drawn,
        };
        let samples = (0..).zip(samples).map(sample).collect();
        Pool { classes: vec!["a".to_owned(), "b".to_owned()], samples }
    }

    fn chosen(sample: usize) -> ReviewRow {
        ReviewRow {
            sample,
            reason: Reason::Check,
            drawn: Drawn::Chosen,
            predicted: Some((1, 0.9)),
            is_answered: false,
        }
    }

    fn indices(rows: &[ReviewRow]) -> Vec<(usize, Reason, bool)> {
        rows.iter().map(|row| (row.sample, row.reason, row.is_answered)).collect()
    }

    #[test]
    fn three_in_ten_rows_are_random_and_spread() {
        let pool = pool(&[(None, Drawn::Given); 40]);
        let order: Vec<usize> = (0..40).rev().collect();
        let plan = RowPlan { pool: &pool, order: &order, count: 10, random_share: 0.3 };
        let rows = plan.rows(&(0..20).map(chosen).collect::<Vec<_>>());
        let random: Vec<usize> = (0..10).filter(|&place| rows[place].reason == Reason::Random).collect();
        assert_eq!(random, [3, 6, 9]);
        assert_eq!(random.iter().map(|&place| rows[place].sample).collect::<Vec<_>>(), [39, 38, 37]);
        assert!(rows.iter().filter(|row| row.reason == Reason::Random).all(|row| row.predicted.is_none()));
        assert_eq!(plan.counts(&rows), RowCounts { check: 7, random: 3, ..RowCounts::default() });
        // Too few chosen rows are made up for, and so are those that are random: the first of the order.
        assert_eq!(plan.counts(&plan.rows(&[chosen(0)])).random, 9);
        let rows = plan.rows(&(30..40).rev().map(chosen).collect::<Vec<_>>());
        assert_eq!(plan.counts(&rows), RowCounts { check: 7, random: 3, ..RowCounts::default() });
        let rows = plan.rows(&(35..40).rev().map(chosen).collect::<Vec<_>>());
        assert_eq!(plan.counts(&rows), RowCounts { random: 10, ..RowCounts::default() });
    }

    #[test]
    fn order_passes_labels_and_skipped_samples() {
        let pool = pool(&[
            (Some(0), Drawn::Chosen),
            (Some(1), Drawn::Given),
            (None, Drawn::Skipped),
            (None, Drawn::Given),
            (Some(0), Drawn::Chosen),
            (None, Drawn::Given),
            (Some(0), Drawn::Chosen),
        ]);
        let order: Vec<usize> = (0..7).collect();
        let plan = RowPlan { pool: &pool, order: &order, count: 2, random_share: 1.0 };
        let rows = plan.rows(&[]);
        // Chosen labels before the last random row count as random; the one behind it does not.
        let expected = [(3, false), (5, false), (0, true), (4, true)]
            .map(|(sample, is_answered)| (sample, Reason::Random, is_answered));
        assert_eq!(indices(&rows), expected);
        let counts = plan.counts(&rows);
        assert_eq!((counts.random, counts.now_random, counts.skipped), (2, 2, 1));
        // The end of the order is not a part of the sample unless a row after it is asked for.
        let all = RowPlan { count: 9, ..plan };
        assert_eq!(all.counts(&all.rows(&[])).now_random, 2);
    }

    #[test]
    fn random_rows_are_shown_without_prediction_although_chosen() {
        let pool = pool(&[(None, Drawn::Given); 4]);
        let order = [2, 0, 1, 3];
        let plan = RowPlan { pool: &pool, order: &order, count: 4, random_share: 0.5 };
        let rows = plan.rows(&[chosen(2), chosen(3)]);
        assert_eq!(
            indices(&rows),
            [
                (3, Reason::Check, false),
                (2, Reason::Random, false),
                (0, Reason::Random, false),
                (1, Reason::Random, false)
            ]
        );
        assert_eq!(rows[1].predicted, None);
    }
}
