//! The feedback of a step: sums over its micro-batches that update the method's state before the next step.
//!
//! The sums are exchanged with the gradient, so that a step needs no further communication. FlexMatch's histogram stays exact,
//! since its thresholds precede its update. The utilisation and the running quantiles, which are not in the paper, lag by one
//! step.

use crate::method::{Method, MethodState};
use crate::mixup::Guidance;
use crate::mixup::split::Split;
use crate::pseudo::{Base, BaseState};

/// Sums over the micro-batches of a step. They are f32, as the gradient is; counts are exact up to 2²⁴.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Feedback {
    /// The change of FlexMatch's histogram, in samples per class; empty for other methods.
    pub selected: Vec<f32>,
    /// The weights of the unlabelled rows, whose mean is the utilisation.
    pub utilisation: Total,
    /// The quantile of AUM in each group, if a running quantile splits easy from hard.
    pub labelled_quantile: Total,
    /// The quantile of APM in each group, if a running quantile splits easy from hard.
    pub unlabelled_quantile: Total,
}

/// A sum and the number of its terms.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Total {
    /// The sum of the terms.
    pub sum: f32,
    /// The number of terms.
    pub count: f32,
}

impl Total {
    /// Returns the total of one value.
    pub fn one(value: f64) -> Self {
        Self { sum: value as f32, count: 1.0 }
    }

    /// Returns the total of these values.
    pub fn of(values: impl ExactSizeIterator<Item = f64>) -> Self {
        let count = values.len() as f32;
        Self { sum: values.sum::<f64>() as f32, count }
    }

    /// Returns the mean of the terms; `None` without terms.
    pub fn mean(self) -> Option<f64> {
        (self.count > 0.0).then(|| f64::from(self.sum) / f64::from(self.count))
    }

    /// Returns `[sum, count]`.
    pub fn to_array(self) -> [f32; 2] {
        [self.sum, self.count]
    }
}

impl From<[f32; 2]> for Total {
    fn from([sum, count]: [f32; 2]) -> Self {
        Self { sum, count }
    }
}

impl Feedback {
    /// The number of values that are not per class.
    const TOTALS: usize = 3;

    /// Returns the length of the list that [`to_vec`](Self::to_vec) makes for a method.
    pub fn width(method: &Method, classes: usize) -> usize {
        let selected = if matches!(method.base, Base::FlexMatch(_)) { classes } else { 0 };
        selected + 2 * Self::TOTALS
    }

    /// Writes the sums as one list, so that the lists of several micro-batches can be added element by element.
    pub fn to_vec(&self) -> Vec<f32> {
        let totals = [self.utilisation, self.labelled_quantile, self.unlabelled_quantile];
        self.selected.iter().copied().chain(totals.into_iter().flat_map(Total::to_array)).collect()
    }

    /// Reads the sums from a list that [`to_vec`](Self::to_vec) made; `None` if it is too short.
    pub fn from_slice(numbers: &[f32]) -> Option<Self> {
        let (selected, totals) = numbers.split_at_checked(numbers.len().checked_sub(2 * Self::TOTALS)?)?;
        let &[utilisation, labelled_quantile, unlabelled_quantile] = totals.as_chunks().0 else {
            return None;
        };
        Some(Self {
            selected: selected.to_vec(),
            utilisation: utilisation.into(),
            labelled_quantile: labelled_quantile.into(),
            unlabelled_quantile: unlabelled_quantile.into(),
        })
    }
}

impl MethodState {
    /// Updates the state with the feedback of step `step`, summed over all its micro-batches.
    pub fn update(&mut self, method: &Method, step: u64, feedback: &Feedback) {
        if let BaseState::FlexMatch(state) = &mut self.base {
            state.update(&feedback.selected);
        }
        let Some(mixup) = method.mixup() else { return };
        mixup.start.update(step, feedback.utilisation.mean().unwrap_or(0.0), &mut self.utilisation);
        if let Some(&Guidance { split: Split::Running { momentum, .. }, .. }) = method.guidance() {
            self.labelled_threshold.update(feedback.labelled_quantile.mean(), momentum);
            self.unlabelled_threshold.update(feedback.unlabelled_quantile.mean(), momentum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mixup::Pairing;
    use crate::preset::paper;
    use crate::pseudo::FlexMatch;
    use crate::schedule::{RunStep, StartRule};

    #[test]
    fn feedback_travels_as_numbers() {
        let method = paper(Base::FlexMatch(FlexMatch::default()));
        let feedback = Feedback {
            selected: vec![2.0, -1.0],
            utilisation: Total { sum: 3.5, count: 7.0 },
            labelled_quantile: Total::one(0.25),
            unlabelled_quantile: Total::default(),
        };
        let numbers = feedback.to_vec();
        assert_eq!(numbers.len(), Feedback::width(&method, 2));
        assert_eq!(Feedback::from_slice(&numbers), Some(feedback));
        assert_eq!(Feedback::from_slice(&numbers[..5]), None);
        assert_eq!(Total::default().mean(), None);
    }

    #[test]
    fn state_is_updated_with_the_feedback() {
        let mut method = paper(Base::FlexMatch(FlexMatch::default()));
        method.mixup.start.rule = StartRule::Utilisation { level: 0.5, momentum: 0.9, not_before: 0 };
        let split = Split::Running { quantile: 0.5, momentum: 0.9 };
        method.mixup.pairing = Pairing::CalibrateMix(Guidance { split, ..Guidance::default() });
        let at = |step| RunStep { step, steps: 10 };
        let mut state = method.initial_state(2, 10);
        assert_eq!(method.mix_weight(at(0), &state), 0.0);
        let feedback = Feedback {
            selected: vec![2.0, 1.0],
            utilisation: Total { sum: 3.0, count: 4.0 },
            labelled_quantile: Total { sum: 3.0, count: 2.0 },
            unlabelled_quantile: Total::default(),
        };
        state.update(&method, 0, &feedback);
        assert_eq!(method.mix_weight(at(1), &state), 1.0, "utilisation passed the level one step before");
        assert_eq!((state.labelled_threshold.value, state.labelled_threshold.steps), (1.5, 1));
        assert_eq!(state.unlabelled_threshold.steps, 0, "no group had an unlabelled row");
        let unlabelled = Feedback { unlabelled_quantile: Total::one(2.0), ..Feedback::default() };
        state.update(&method, 1, &unlabelled);
        assert_eq!((state.unlabelled_threshold.value, state.labelled_threshold.steps), (2.0, 1));
        let BaseState::FlexMatch(flex) = &state.base else { unreachable!("FlexMatch's state") };
        assert_eq!((&flex.selected[..], flex.unselected), (&[2, 1][..], 7));
    }
}
