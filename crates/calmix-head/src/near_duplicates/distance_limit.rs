//! The distance below which two labels are near-duplicates, estimated from the distances between distinct samples.
//!
//! The number of distinct samples within a distance `d` of a sample grows as `d` to the power of the local dimension of the data,
//! which follows from the distances to the k-th and the 2k-th neighbour. From the k-th neighbour, which is not a copy unless
//! there are k of them, that gives the number of distinct labels expected within `d`.

use std::sync::atomic::AtomicBool;

use super::unit_features::{BLOCK, UnitFeatures, distance};
use crate::error::HeadError;
use crate::progress::check_stop;

/// The expected number of distinct labels within the distance below which labels are linked.
const COPY: f64 = 0.01;
/// The expected number of distinct labels within the distance below which `is_copy` decides. Pixels alone would not do: most
/// images of one handwritten digit correlate above 0.9 with another one.
const DOUBTFUL: f64 = 0.05;
/// The smallest and the largest k: more than the usual number of copies of a sample, and few enough to be neighbours.
const NEIGHBOURS: [usize; 2] = [5, 10];
/// The divisor of the rows per class that gives k: the k-th neighbour should be of the same class.
const PART_OF_CLASS: usize = 8;
/// The number of rows per class, in units of k, below which a class is compared with its own labels too.
const SMALL_CLASS: usize = 4;
/// The smallest reciprocal of the dimension.
const MIN_GROWTH: f64 = 1e-3;

/// The distances from a label to its k-th and its 2k-th neighbour.
#[derive(Debug, Clone, Copy)]
struct Neighbourhood {
    near: f64,
    far: f64,
}

/// The limits of the distance from a label to its near-duplicates.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DistanceLimit {
    /// The distance below which another label of the class is a near-duplicate.
    pub(super) copy: f64,
    /// The distance below which another label of the class may be a near-duplicate.
    pub(super) doubtful: f64,
}

/// Computes the limits of each label. All are zero if the distances between distinct samples cannot be estimated.
pub(super) fn distance_limits(
    unit: &UnitFeatures,
    stop: &AtomicBool,
) -> Result<Vec<DistanceLimit>, HeadError> {
    let labels = unit.labels();
    let others = (unit.reference.len() / unit.width).saturating_sub(1);
    let per_class = others / (PART_OF_CLASS * unit.rows_of_class.len().max(1));
    let k = per_class.clamp(NEIGHBOURS[0], NEIGHBOURS[1]).min(others / 2);
    if k == 0 || labels < 2 {
        return Ok(vec![DistanceLimit::default(); labels]);
    }
    let neighbourhoods = neighbourhoods(unit, k, stop)?;
    let growths = neighbourhoods.iter().filter_map(|found| growth(found.near, found.far, 2.0));
    let Some(growth) = median(growths.collect()) else {
        return Ok(vec![DistanceLimit::default(); labels]);
    };
    let growth = growth.max(MIN_GROWTH);
    // The number of labels expected among the k nearest of the other samples.
    let expected = (k * (labels - 1)) as f64 / others as f64;
    let mut limits: Vec<DistanceLimit> =
        neighbourhoods.iter().map(|found| limit(found.near, expected, growth)).collect();
    limit_small_classes(unit, SMALL_CLASS * k, others, growth, &mut limits);
    Ok(limits)
}

/// Lowers the limits of small classes. Their labels have k-th neighbours of other classes, which may be much farther away than
/// distinct samples of their own; the median distance to the labels of the class is used instead.
fn limit_small_classes(
    unit: &UnitFeatures,
    enough: usize,
    others: usize,
    growth: f64,
    limits: &mut [DistanceLimit],
) {
    let mut classes = Vec::new();
    let mut growths = Vec::new();
    for rows in unit.rows_of_class.values() {
        if rows.len() < 2 || others * rows.len() >= enough * unit.labels() {
            continue;
        }
        let half = rows.len() / 2;
        let quarter = half.div_ceil(2);
        let vectors = unit.of(rows);
        let mut medians = Vec::new();
        for (place, cosines) in unit.cosines(&vectors, &vectors).chunks_exact_mut(rows.len()).enumerate() {
            cosines[place] = f32::NEG_INFINITY;
            cosines.sort_unstable_by(|a, b| b.total_cmp(a));
            let median = distance(cosines[half - 1]);
            if quarter < half {
                growths.extend(self::growth(
                    distance(cosines[quarter - 1]),
                    median,
                    half as f64 / quarter as f64,
                ));
            }
            medians.push(median);
        }
        classes.push((rows, half, medians));
    }
    let growth = median(growths).map_or(growth, |within| within.max(growth));
    for (rows, half, medians) in classes {
        for (&row, median) in rows.iter().zip(medians) {
            let within = limit(median, half as f64, growth);
            limits[row].copy = limits[row].copy.min(within.copy);
            limits[row].doubtful = limits[row].doubtful.min(within.doubtful);
        }
    }
}

/// Computes the limits of a label with `expected` distinct labels within `distance`.
fn limit(distance: f64, expected: f64, growth: f64) -> DistanceLimit {
    let [copy, doubtful] =
        [COPY, DOUBTFUL].map(|wanted| distance * libm::pow((wanted / expected).min(1.0), growth));
    DistanceLimit { copy, doubtful }
}

/// Finds the distances from each label to its k-th and its 2k-th neighbour in the reference.
fn neighbourhoods(unit: &UnitFeatures, k: usize, stop: &AtomicBool) -> Result<Vec<Neighbourhood>, HeadError> {
    let columns = unit.reference.len() / unit.width;
    let mut found = Vec::with_capacity(unit.labels());
    for block in unit.labelled.chunks(BLOCK * unit.width) {
        check_stop(stop)?;
        for cosines in unit.cosines(block, &unit.reference).chunks_exact_mut(columns) {
            let row = found.len();
            if row.is_multiple_of(unit.stride) {
                // A label is not its own neighbour.
                cosines[row / unit.stride] = f32::NEG_INFINITY;
            }
            let (nearer, &mut far, _) = cosines.select_nth_unstable_by(2 * k - 1, |a, b| b.total_cmp(a));
            let (_, &mut near, _) = nearer.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
            found.push(Neighbourhood { near: distance(near), far: distance(far) });
        }
    }
    Ok(found)
}

/// Estimates the reciprocal of the local dimension: the exponent with which distance grows with the number of neighbours, if
/// there are `times` as many within `far` as within `near`. `None` if there are identical vectors at `near`.
fn growth(near: f64, far: f64, times: f64) -> Option<f64> {
    (near > 0.0).then(|| libm::log(far / near) / libm::log(times))
}

fn median(mut numbers: Vec<f64>) -> Option<f64> {
    let middle = numbers.len() / 2;
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get(middle).copied()
}
