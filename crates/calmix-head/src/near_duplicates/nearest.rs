//! The nearest labels of the same class.

use std::sync::atomic::AtomicBool;

use super::{BLOCK, UnitFeatures};
use crate::error::HeadError;
use crate::progress::check_stop;

/// The number of neighbours that a label is compared with: the nearest one of a crop is usually the photo that it was cut from,
/// but not always.
const COMPARED: usize = 3;

/// The distance between vectors of unit length with this cosine.
pub(super) fn distance(cosine: f32) -> f64 {
    libm::sqrt((2.0 - 2.0 * f64::from(cosine)).max(0.0))
}

/// The lower rows that each label is compared with, ascending: its nearest neighbours, and the labels that it is a nearest
/// neighbour of.
pub(super) fn nearest_of_class(unit: &UnitFeatures, stop: &AtomicBool) -> Result<Vec<Vec<usize>>, HeadError> {
    let mut lower = vec![Vec::new(); unit.labels()];
    for rows in unit.rows_of_class.values() {
        let vectors = unit.of(rows);
        for (block, vectors_of_block) in vectors.chunks(BLOCK * unit.width).enumerate() {
            check_stop(stop)?;
            let cosines = unit.cosines(vectors_of_block, &vectors);
            for (place, cosines) in cosines.chunks_exact(rows.len()).enumerate() {
                let row = rows[block * BLOCK + place];
                for neighbour in nearest(cosines, block * BLOCK + place).into_iter().map(|place| rows[place])
                {
                    lower[row.max(neighbour)].push(row.min(neighbour));
                }
            }
        }
    }
    for rows in &mut lower {
        rows.sort_unstable();
        rows.dedup();
    }
    Ok(lower)
}

/// The places of the greatest cosines apart from its own.
fn nearest(cosines: &[f32], own: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..cosines.len()).filter(|&place| place != own).collect();
    // The place decides between equal cosines, so that the result does not depend on the order of a partial sort.
    let order = |a: &usize, b: &usize| cosines[*b].total_cmp(&cosines[*a]).then(a.cmp(b));
    if places.len() > COMPARED {
        places.select_nth_unstable_by(COMPARED, order);
        places.truncate(COMPARED);
    }
    places
}
