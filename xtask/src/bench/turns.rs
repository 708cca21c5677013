//! Repetitions of all sides in turn.

use std::collections::BTreeMap;

use anyhow::Result;

use super::worker::{Repetition, Worker};

/// The measurements of one side.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns {
    /// Of each repetition.
    pub(crate) seconds: Vec<f64>,
    /// Its other metrics per repetition, by name.
    pub(crate) metrics: BTreeMap<String, Vec<f64>>,
    /// The most memory it had beyond what it had before its first repetition, if the system provides it.
    pub(crate) peak: Option<u64>,
}

/// `repeat` repetitions of each side, after one that warms up and is not counted. Every round begins with another
/// side, so that none is always the first, and no side runs while another does.
pub(crate) fn take(sides: &mut [Worker], repeat: usize) -> Result<Vec<Turns>> {
    for side in &mut *sides {
        side.repetition()?;
    }
    let mut turns = vec![Turns::default(); sides.len()];
    for round in 0..repeat {
        for turn in 0..sides.len() {
            let side = (round + turn) % sides.len();
            let Repetition { seconds, metrics } = sides[side].repetition()?;
            turns[side].seconds.push(seconds);
            for (name, metric) in metrics {
                turns[side].metrics.entry(name).or_default().push(metric);
            }
        }
    }
    for (side, turns) in sides.iter().zip(&mut turns) {
        turns.peak = side.peak();
    }
    Ok(turns)
}
