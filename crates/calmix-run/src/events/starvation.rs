//! Warns when a run hardly uses its unlabelled samples.

use serde::{Deserialize, Serialize};

use super::{Note, Step};

/// The utilisation below which a step counts as starved.
const MIN_UTILISATION: f64 = 0.01;
/// The number of consecutive starved steps before a warning.
const PATIENCE: u64 = 200;

/// Monitors the utilisation. If no prediction reaches the threshold, the unlabelled loss stays at zero without any other
/// sign.
///
/// It warns once per starved period. A checkpoint contains this state, so that a resumed run warns at the same step.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Starvation {
    /// The first step of the starved period.
    since: Option<u64>,
    warned: bool,
}

impl Starvation {
    /// Updates with the utilisation of a step, and returns a warning if one is due. Steps may be skipped: the period is
    /// measured by step numbers.
    pub fn update(&mut self, step: &Step) -> Option<Note> {
        let used = step.utilisation?;
        if used >= MIN_UTILISATION {
            *self = Self::default();
            return None;
        }
        let since = *self.since.get_or_insert(step.step);
        let starved = step.step.saturating_sub(since).saturating_add(1);
        if self.warned || starved < PATIENCE {
            return None;
        }
        self.warned = true;
        Some(Note {
            step: step.step,
            text: format!(
                "less than {:.0}% of the unlabelled samples were used in each of {starved} steps",
                100.0 * MIN_UTILISATION
            ),
            hint: "few predictions are confident enough: lower the threshold, train on the labelled samples for \
                   longer first, or check that the classes are balanced and the labels right"
                .to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Loss;

    fn step(step: u64, utilisation: Option<f64>) -> Step {
        let loss = Loss { total: 1.0, labelled: 1.0, ..Loss::default() };
        Step { utilisation, ..Step::new(step, loss) }
    }

    /// Returns the steps at which it warns.
    fn notes(watch: &mut Starvation, steps: impl Iterator<Item = Step>) -> Vec<u64> {
        steps.filter_map(|step| watch.update(&step)).map(|note| note.step).collect()
    }

    #[test]
    fn one_note_a_spell() {
        let used = |n| if n == 500 { Some(0.01) } else { Some(0.009) };
        let mut watch = Starvation::default();
        assert_eq!(notes(&mut watch, (1..=1000).map(|n| step(n, used(n)))), [200, 700]);
    }

    #[test]
    fn resumed_watch_warns_at_the_same_step() {
        let mut watch = Starvation::default();
        assert!(notes(&mut watch, (1..=150).map(|n| step(n, Some(0.0)))).is_empty());
        let kept = serde_json::to_string(&watch).unwrap();
        let mut resumed: Starvation = serde_json::from_str(&kept).unwrap();
        assert_eq!(notes(&mut resumed, (151..=400).map(|n| step(n, Some(0.0)))), [200]);
    }

    #[test]
    fn supervised_training_does_not_starve() {
        let mut watch = Starvation::default();
        assert!(notes(&mut watch, (1..=1000).map(|n| step(n, None))).is_empty());
    }
}
