//! The memory of samples as many processes hold it.

use calmix_core::matrix::Matrix;
use calmix_core::method::Method;
use calmix_core::samples::{LocalState, SampleState, StateError};

use super::batch::SAMPLES;

/// Samples owned by several parts, as by several processes: sample n by part n mod k, at place n div k.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Owned(Vec<LocalState>);

impl Owned {
    pub(crate) fn new(method: &Method, classes: usize, parts: usize) -> Self {
        let places: Vec<u64> = (0..SAMPLES as u64).collect();
        Self((0..parts).map(|_| method.local_state(classes, &places, SAMPLES)).collect())
    }

    /// Lets each owner answer for its rows, and puts the answers together again.
    fn ask<T: Clone + Default>(
        &mut self,
        ids: &[u64],
        mut ask: impl FnMut(&mut LocalState, &[u64], &[usize]) -> Result<Vec<T>, StateError>,
    ) -> Result<Vec<T>, StateError> {
        let parts = self.0.len() as u64;
        let mut answers = vec![T::default(); ids.len()];
        for (part, owner) in (0..).zip(&mut self.0) {
            let rows: Vec<usize> = (0..ids.len()).filter(|&row| ids[row] % parts == part).collect();
            let places: Vec<u64> = rows.iter().map(|&row| ids[row] / parts).collect();
            for (row, answer) in rows.iter().zip(ask(owner, &places, &rows)?) {
                answers[*row] = answer;
            }
        }
        Ok(answers)
    }
}

impl SampleState for Owned {
    fn visit_labelled(&mut self, ids: &[u64], margins: &[f64]) -> Result<Vec<f64>, StateError> {
        self.ask(ids, |owner, places, rows| {
            owner.visit_labelled(places, &rows.iter().map(|&r| margins[r]).collect::<Vec<_>>())
        })
    }

    fn visit_unlabelled(
        &mut self,
        ids: &[u64],
        logits: Matrix<'_>,
        pseudo: &[u32],
    ) -> Result<Vec<f64>, StateError> {
        self.ask(ids, |owner, places, rows| {
            let own: Vec<f32> = rows.iter().flat_map(|&r| logits.row(r).iter().copied()).collect();
            let own = Matrix::new(&own, rows.len(), logits.width()).unwrap();
            owner.visit_unlabelled(places, own, &rows.iter().map(|&r| pseudo[r]).collect::<Vec<_>>())
        })
    }

    fn remember_selected(
        &mut self,
        ids: &[u64],
        selected: &[Option<u32>],
    ) -> Result<Vec<Option<u32>>, StateError> {
        self.ask(ids, |owner, places, rows| {
            owner.remember_selected(places, &rows.iter().map(|&r| selected[r]).collect::<Vec<_>>())
        })
    }

    fn sum_over_groups(&mut self, _sums: &mut [f64]) -> Result<(), StateError> {
        Ok(())
    }
}
