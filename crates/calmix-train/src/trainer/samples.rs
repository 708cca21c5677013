//! The memory of single samples: as tensors of a checkpoint, and how a step that must not count is taken back.

use calmix_core::margin::{LabelledMargins, LabelledParts, MarginParts, MarginStore};
use calmix_core::samples::{LocalState, StateError};

use super::error::StateProblem;
use crate::evaluate::TensorsError;
use crate::tensors::{self, Tensors, tensor};

/// The file of a checkpoint that holds them.
pub(super) fn write(samples: &LocalState) -> Result<Vec<u8>, TensorsError> {
    let mut named = Vec::new();
    if let Some(store) = &samples.labelled {
        let LabelledParts { ids, sums, visits } = store.parts();
        let n = [ids.len()];
        named.extend([
            tensor("aum.ids", &n, ids),
            tensor("aum.sums", &n, sums),
            tensor("aum.visits", &n, visits),
        ]);
    }
    if let Some(store) = &samples.unlabelled {
        let MarginParts { classes, visits, values, .. } = store.parts();
        let n = visits.len();
        named.extend([tensor("apm.visits", &[n], visits), tensor("apm.values", &[n, *classes], values)]);
    }
    if let Some(selected) = &samples.selected {
        named.push(tensor("selected", &[selected.len()], selected));
    }
    tensors::write(&named, None)
}

/// What a checkpoint remembers, for the samples and the method of `fresh`, a state before the first step.
pub(super) fn read(bytes: &[u8], fresh: LocalState) -> Result<LocalState, StateProblem> {
    let file = Tensors::read(bytes)?;
    let LocalState { labelled, unlabelled, selected } = fresh;
    let labelled = labelled.map(|store| -> Result<_, StateProblem> {
        let ids = LabelledParts::from(store).ids;
        let n = [ids.len()];
        if file.numbers::<u64>("aum.ids", &n)? != ids {
            return Err(StateError::Damaged { what: "margins of other labelled samples" }.into());
        }
        let (sums, visits) = (file.numbers("aum.sums", &n)?, file.numbers("aum.visits", &n)?);
        Ok(LabelledParts { ids, sums, visits }.try_into()?)
    });
    let unlabelled = unlabelled.map(|store| -> Result<_, StateProblem> {
        let parts = MarginParts::from(store);
        let (n, classes) = (parts.visits.len(), parts.classes);
        let (visits, values) =
            (file.numbers("apm.visits", &[n])?, file.numbers("apm.values", &[n, classes])?);
        Ok(MarginParts { visits, values, ..parts }.try_into()?)
    });
    let selected = selected.map(|labels| file.numbers("selected", &[labels.len()]));
    Ok(LocalState {
        labelled: labelled.transpose()?,
        unlabelled: unlabelled.transpose()?,
        selected: selected.transpose()?,
    })
}

/// What the rows of a batch were like before it.
#[derive(Debug, Default)]
pub(super) struct Before {
    labelled: Vec<(usize, f64, u32)>,
    unlabelled: Vec<(usize, u32, Vec<f32>)>,
    selected: Vec<(usize, i32)>,
}

impl Before {
    /// Copies what a step on these samples may change.
    pub(super) fn of(samples: &LocalState, labelled: &[u64], unlabelled: &[u64]) -> Self {
        let mut before = Self::default();
        if let Some(LabelledParts { ids, sums, visits }) =
            samples.labelled.as_ref().map(LabelledMargins::parts)
        {
            let places = labelled.iter().filter_map(|id| ids.binary_search(id).ok());
            before.labelled = places.filter_map(|at| Some((at, *sums.get(at)?, *visits.get(at)?))).collect();
        }
        let places = || unlabelled.iter().filter_map(|&id| usize::try_from(id).ok());
        if let Some(MarginParts { classes, visits, values, .. }) =
            samples.unlabelled.as_ref().map(MarginStore::parts)
        {
            let row = |at: usize| values.get(at * classes..(at + 1) * classes).map(<[f32]>::to_vec);
            before.unlabelled = places().filter_map(|at| Some((at, *visits.get(at)?, row(at)?))).collect();
        }
        if let Some(labels) = &samples.selected {
            before.selected = places().filter_map(|at| Some((at, *labels.get(at)?))).collect();
        }
        before
    }

    /// Takes the step back. A pass over all samples, for something that hardly ever happens.
    pub(super) fn restore(self, samples: &mut LocalState) -> Result<(), StateError> {
        if let Some(store) = samples.labelled.take() {
            let mut parts = LabelledParts::from(store);
            for (at, sum, visits) in self.labelled {
                put(&mut parts.sums, at, sum);
                put(&mut parts.visits, at, visits);
            }
            samples.labelled = Some(parts.try_into()?);
        }
        if let Some(store) = samples.unlabelled.take() {
            let mut parts = MarginParts::from(store);
            let classes = parts.classes;
            for (at, visits, row) in self.unlabelled {
                put(&mut parts.visits, at, visits);
                if let Some(place) = parts.values.get_mut(at * classes..(at + 1) * classes) {
                    place.copy_from_slice(&row);
                }
            }
            samples.unlabelled = Some(parts.try_into()?);
        }
        if let Some(labels) = &mut samples.selected {
            self.selected.into_iter().for_each(|(at, label)| put(labels, at, label));
        }
        Ok(())
    }
}

fn put<T>(list: &mut [T], at: usize, value: T) {
    if let Some(place) = list.get_mut(at) {
        *place = value;
    }
}

#[cfg(test)]
mod tests {
    use calmix_core::matrix::Matrix;
    use calmix_core::preset::paper;
    use calmix_core::pseudo::{Base, FlexMatch};
    use calmix_core::samples::SampleState;

    use super::*;

    fn fresh() -> LocalState {
        paper(Base::FlexMatch(FlexMatch::default()), 10).local_state(2, &[3, 5], 8)
    }

    fn visit(samples: &mut LocalState, by: f32) {
        samples.visit_labelled(&[5, 5], &[f64::from(by), 2.0]).unwrap();
        let logits = [by, 0.0, 1.0, by];
        samples.visit_unlabelled(&[7, 0], Matrix::new(&logits, 2, 2).unwrap(), &[0, 1]).unwrap();
        samples.remember_selected(&[7, 0], &[Some(1), None]).unwrap();
    }

    #[test]
    fn what_is_kept_comes_back() {
        let mut samples = fresh();
        visit(&mut samples, 0.3);
        let kept = write(&samples).unwrap();
        assert_eq!(read(&kept, fresh()).unwrap(), samples);
        assert!(
            read(&kept, paper(Base::Supervised, 10).local_state(2, &[3, 6], 8)).is_err(),
            "other samples"
        );
        assert!(
            read(&kept, paper(Base::Supervised, 10).local_state(3, &[3, 5], 8)).is_err(),
            "other classes"
        );
        assert_eq!(
            read(&write(&LocalState::default()).unwrap(), LocalState::default()).unwrap(),
            LocalState::default()
        );
    }

    #[test]
    fn a_step_is_taken_back_whole() {
        let mut samples = fresh();
        visit(&mut samples, 0.3);
        let first = samples.clone();
        let before = Before::of(&samples, &[5, 5], &[7, 0]);
        visit(&mut samples, -4.0);
        samples.remember_selected(&[0], &[Some(0)]).unwrap();
        assert_ne!(samples, first);
        before.restore(&mut samples).unwrap();
        assert_eq!(samples, first);
    }
}
