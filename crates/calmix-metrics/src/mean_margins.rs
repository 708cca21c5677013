//! The mean margins of the easy and the hard rows of a batch.

use calmix_core::plan::Difficulty;
use serde::{Deserialize, Serialize};

/// Mean margins of the halves of a batch: AUM of the labelled, APM of the unlabelled samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Margins {
    /// The mean margins (AUM) of the labelled rows.
    pub labelled: EasyHard,
    /// The mean margins (APM) of the unlabelled rows.
    pub unlabelled: EasyHard,
}

/// The mean of each half; `None` if it is empty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EasyHard {
    /// The mean margin of the easy rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub easy: Option<f64>,
    /// The mean margin of the hard rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard: Option<f64>,
}

impl Margins {
    /// Averages the margins of a plan.
    pub fn of(difficulty: &Difficulty) -> Self {
        let half = |margins: &[f64], rows: &[usize]| mean(rows.iter().filter_map(|&row| margins.get(row)));
        let halves = |margins: &[f64], of: &calmix_core::mixup::split::Halves| EasyHard {
            easy: half(margins, &of.easy),
            hard: half(margins, &of.hard),
        };
        Self {
            labelled: halves(&difficulty.aum, &difficulty.labelled),
            unlabelled: halves(&difficulty.apm, &difficulty.unlabelled),
        }
    }
}

fn mean<'a>(numbers: impl Iterator<Item = &'a f64>) -> Option<f64> {
    let (mut sum, mut n) = (0.0, 0_u32);
    for number in numbers {
        sum += number;
        n += 1;
    }
    (n > 0).then(|| sum / f64::from(n))
}

#[cfg(test)]
mod tests {
    use calmix_core::mixup::split::Halves;

    use super::*;

    #[test]
    fn margins_are_means_of_halves() {
        let difficulty = Difficulty {
            aum: vec![1.0, 4.0, 3.0],
            apm: vec![],
            labelled: Halves { easy: vec![1, 2], hard: vec![0] },
            unlabelled: Halves::default(),
        };
        let margins = Margins::of(&difficulty);
        assert_eq!(margins.labelled, EasyHard { easy: Some(3.5), hard: Some(1.0) });
        assert_eq!(margins.unlabelled, EasyHard { easy: None, hard: None });
    }
}
