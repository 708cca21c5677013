//! The state of each sample: AUM of the labelled ones; APM and FlexMatch's label of the unlabelled ones.
//!
//! Labelled samples are few, and any micro-batch may draw them: every process keeps all of them and includes the visits of all
//! groups.
//!
//! An unlabelled sample belongs to one micro-batch of the step, which always draws it, so its state stays with that
//! micro-batch. It is found by its slot, the sample's position within its micro-batch.

pub mod label_weight;

use serde::{Deserialize, Serialize};

use crate::error::CoreError;
use crate::margin::{LabelledMargins, MarginStore};
use crate::matrix::Matrix;
use crate::method::Method;
use crate::mixup::Guidance;
use crate::pseudo::Base;
use crate::softmax::argmax;

/// The state of the unlabelled samples of a process, as far as the method needs it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Samples {
    /// The samples of each micro-batch that this process runs.
    pub micro_batches: Vec<UnlabelledSamples>,
    /// The values that the visits of this step replaced, oldest first.
    undo: Vec<Undo>,
    /// The pseudo-margins of [`Undo::Margins`], one row after the other.
    undo_margins: Vec<f32>,
}

/// The unlabelled samples of one micro-batch, by slot.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnlabelledSamples {
    /// APM, if pairs are guided by difficulty.
    pub margins: Option<MarginStore>,
    /// FlexMatch's last confident label of each sample, −1 if there was none.
    pub selected: Option<Vec<i32>>,
}

/// The result of a visit of a micro-batch's unlabelled rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UnlabelledVisit {
    /// APM of each row at its pseudo-label, including all visits of the step; `None` if it is not averaged.
    pub apm: Option<Vec<f32>>,
    /// The change of FlexMatch's histogram, in samples per class; empty for other methods.
    pub selected: Vec<f32>,
}

/// The state of a sample before a visit.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Undo {
    /// Micro-batch, slot and number of visits; the margins themselves are in `undo_margins`.
    Margins(usize, u64, u32),
    /// Micro-batch, slot and label.
    Selected(usize, usize, i32),
}

impl Samples {
    /// Returns the state before the first step, for micro-batches of `lengths` samples.
    pub fn new(method: &Method, classes: usize, lengths: impl IntoIterator<Item = usize>) -> Self {
        let guidance = method.guidance();
        let micro_batch = |samples| UnlabelledSamples {
            margins: guidance.map(|guidance| MarginStore::new(guidance.averaging, samples, classes)),
            selected: matches!(method.base, Base::FlexMatch(_)).then(|| vec![-1; samples]),
        };
        Self { micro_batches: lengths.into_iter().map(micro_batch).collect(), ..Self::default() }
    }

    /// Creates the state as [`new`](Self::new) does, but checks for enough memory.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn try_new(method: &Method, classes: usize, lengths: &[usize]) -> Result<Self, CoreError> {
        let samples = lengths.iter().sum();
        let bytes = Self::bytes(method, classes, samples);
        let memory = || CoreError::Memory { samples, classes, bytes };
        // Reserve fallibly: an allocation that fails later would abort the process.
        let mut probe = Vec::<u8>::new();
        probe.try_reserve_exact(usize::try_from(bytes).map_err(|_| memory())?).map_err(|_| memory())?;
        drop(probe);
        Ok(Self::new(method, classes, lengths.iter().copied()))
    }

    /// Returns the size of the state of these samples, in bytes.
    pub fn bytes(method: &Method, classes: usize, samples: usize) -> u64 {
        let guided = method.guidance().is_some();
        let margins = if guided { MarginStore::bytes(samples, classes) } else { 0 };
        let flexmatch = matches!(method.base, Base::FlexMatch(_));
        let selected = if flexmatch { (samples as u64).saturating_mul(4) } else { 0 };
        margins.saturating_add(selected)
    }

    /// Updates the state with the logits of a micro-batch's unlabelled rows; the pseudo-margins only if `margins`.
    ///
    /// # Errors
    /// If there is no such micro-batch or slot, or a row does not have C logits.
    pub fn visit_unlabelled(
        &mut self,
        method: &Method,
        micro_batch: usize,
        slots: &[u64],
        logits: Matrix<'_>,
        margins: bool,
    ) -> Result<UnlabelledVisit, CoreError> {
        let undo = &mut self.undo;
        let samples = self
            .micro_batches
            .get_mut(micro_batch)
            .ok_or(CoreError::MissingState { what: "this micro-batch" })?;
        let rows = || slots.iter().copied().zip(logits.iter());
        let mut visit = UnlabelledVisit::default();
        if margins {
            let store = samples.margins.as_mut().ok_or(CoreError::MissingState { what: "pseudo-margins" })?;
            for (slot, row) in rows() {
                let (visits, apm) = store.sample(slot)?;
                self.undo_margins.extend_from_slice(apm);
                undo.push(Undo::Margins(micro_batch, slot, visits));
                store.visit(slot, row)?;
            }
            let apm = rows().map(|(slot, row)| store.apm(slot, argmax(row) as u32));
            visit.apm = Some(apm.collect::<Result<_, _>>()?);
        }
        if let Base::FlexMatch(rule) = &method.base {
            let labels =
                samples.selected.as_mut().ok_or(CoreError::MissingState { what: "selected labels" })?;
            visit.selected = vec![0.0; logits.width()];
            for (slot, row) in rows() {
                let label = usize::try_from(slot).ok().and_then(|at| Some((at, labels.get_mut(at)?)));
                let (at, label) = label.ok_or(CoreError::UnknownSample { sample: slot })?;
                let Some(new) = rule.selects(row) else { continue };
                undo.push(Undo::Selected(micro_batch, at, *label));
                for (class, by) in [(Some(new), 1.0), (u32::try_from(*label).ok(), -1.0)] {
                    if let Some(change) = class.and_then(|class| visit.selected.get_mut(class as usize)) {
                        *change += by;
                    }
                }
                *label = i32::try_from(new)
                    .map_err(|_| CoreError::MissingState { what: "labels of such a large class" })?;
            }
        }
        Ok(visit)
    }

    /// Commits the step: its visits can no longer be undone.
    pub fn commit(&mut self) {
        self.undo.clear();
        self.undo_margins.clear();
    }

    /// Discards the step: undoes every visit since the last commit, the last one first.
    pub fn undo(&mut self) {
        while let Some(undo) = self.undo.pop() {
            match undo {
                Undo::Margins(micro_batch, slot, visits) => {
                    let store = self
                        .micro_batches
                        .get_mut(micro_batch)
                        .and_then(|micro_batch| micro_batch.margins.as_mut());
                    if let Some(store) = store {
                        let row = self.undo_margins.len().saturating_sub(store.parts().classes);
                        // It cannot fail: the sample existed when it was visited.
                        let _ = store.restore(slot, visits, &self.undo_margins[row..]);
                        self.undo_margins.truncate(row);
                    }
                }
                Undo::Selected(micro_batch, at, before) => {
                    let labels = self
                        .micro_batches
                        .get_mut(micro_batch)
                        .and_then(|micro_batch| micro_batch.selected.as_mut());
                    if let Some(label) = labels.and_then(|labels| labels.get_mut(at)) {
                        *label = before;
                    }
                }
            }
        }
    }
}

/// The labelled samples of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LabelledSamples {
    /// AUM, if pairs are guided by difficulty.
    pub margins: Option<LabelledMargins>,
    /// The values that the visits of this step replaced, oldest first: the average of a sample's margins, and its visits.
    undo: Vec<(u64, (f64, u32))>,
}

impl LabelledSamples {
    /// Returns the state before the first step.
    pub fn new(method: &Method, ids: &[u64]) -> Self {
        let store = |guidance: &Guidance| LabelledMargins::new(guidance.averaging, ids);
        Self { margins: method.guidance().map(store), undo: Vec::new() }
    }

    /// Adds the margins of the labelled rows of all groups, in the order of groups, micro-batches and rows.
    ///
    /// # Errors
    /// If a sample is not one of the labelled ones.
    pub fn visit(&mut self, ids: &[u64], margins: &[f64]) -> Result<(), CoreError> {
        let Some(store) = &mut self.margins else { return Ok(()) };
        for (&id, &margin) in ids.iter().zip(margins) {
            self.undo.push((id, store.sample(id)?));
            store.visit(id, margin)?;
        }
        Ok(())
    }

    /// Returns the AUM of each of these samples; `None` if pairs are not guided by difficulty.
    ///
    /// # Errors
    /// If a sample is not one of the labelled ones.
    pub fn aum(&self, ids: &[u64]) -> Result<Option<Vec<f64>>, CoreError> {
        let aum = |store: &LabelledMargins| ids.iter().map(|&id| store.aum(id)).collect();
        self.margins.as_ref().map(aum).transpose()
    }

    /// Commits the step: its visits can no longer be undone.
    pub fn commit(&mut self) {
        self.undo.clear();
    }

    /// Discards the step: undoes every visit since the last commit, the last one first.
    pub fn undo(&mut self) {
        while let (Some((id, before)), Some(store)) = (self.undo.pop(), &mut self.margins) {
            // It cannot fail: the sample existed when it was visited.
            let _ = store.restore(id, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::paper;
    use crate::pseudo::{FixMatch, FlexMatch};

    fn flexmatch() -> Method {
        paper(Base::FlexMatch(FlexMatch::default()))
    }

    #[test]
    fn too_many_samples_for_memory_are_an_error() {
        let method = flexmatch();
        assert_eq!(Samples::bytes(&method, 10, 1_000), 4 * 1_000 * 11 + 4 * 1_000);
        assert_eq!(Samples::try_new(&method, 2, &[4, 3]).unwrap(), samples());
        for (classes, length) in [(1 << 20, 1 << 40), (usize::MAX, usize::MAX)] {
            let error = Samples::try_new(&method, classes, &[length]).unwrap_err();
            assert!(matches!(error, CoreError::Memory { .. }), "{error}");
        }
    }

    fn samples() -> Samples {
        Samples::new(&flexmatch(), 2, [4, 3])
    }

    fn visit(samples: &mut Samples, micro_batch: usize, slots: &[u64], logits: &[f32]) -> UnlabelledVisit {
        let logits = Matrix::new(logits, slots.len(), 2).unwrap();
        samples.visit_unlabelled(&flexmatch(), micro_batch, slots, logits, true).unwrap()
    }

    #[test]
    fn selected_labels_are_overwritten() {
        let mut samples = samples();
        let confident = [9.0, 0.0, 0.0, 9.0, 0.0, 0.1];
        // Slot 1 is selected for class 0 and then for class 1 in one batch; slot 2 is not sure enough.
        assert_eq!(visit(&mut samples, 0, &[1, 1, 2], &confident).selected, [0.0, 1.0]);
        assert_eq!(visit(&mut samples, 0, &[1, 2], &[0.1, 0.0, 9.0, 0.0]).selected, [1.0, 0.0]);
        assert_eq!(samples.micro_batches[0].selected, Some(vec![-1, 1, 0, -1]));
        assert_eq!(samples.micro_batches[1].selected, Some(vec![-1; 3]));
    }

    #[test]
    fn apm_includes_the_visit() {
        let mut samples = samples();
        let apm = visit(&mut samples, 1, &[0], &[2.0, 0.0]).apm.unwrap();
        assert!((apm[0] - 0.997 * 2.0).abs() < 1e-6);
    }

    /// One sample twice in a batch: undone in reverse order.
    #[test]
    fn undo_restores_every_visit() {
        let mut samples = samples();
        visit(&mut samples, 0, &[1, 0], &[9.0, 0.0, 0.1, 0.0]);
        samples.commit();
        let before = samples.clone();
        visit(&mut samples, 0, &[1, 1, 2], &[0.0, 9.0, 9.0, 0.0, 0.0, 9.0]);
        visit(&mut samples, 1, &[2], &[0.0, 9.0]);
        assert_ne!(samples.micro_batches, before.micro_batches);
        samples.undo();
        assert_eq!(samples, before);
    }

    #[test]
    fn missing_state_is_an_error() {
        let mut none = Samples::new(&flexmatch().without_mixup(), 2, [4]);
        let logits = Matrix::new(&[0.0; 2], 1, 2).unwrap();
        let error = none.visit_unlabelled(&flexmatch(), 0, &[0], logits, true).unwrap_err().to_string();
        assert_eq!(error, "this state does not keep pseudo-margins: it belongs to another method");
        assert!(none.visit_unlabelled(&flexmatch(), 0, &[9], logits, false).is_err());
        assert!(none.visit_unlabelled(&flexmatch(), 1, &[0], logits, false).is_err());
    }

    fn labelled_samples() -> LabelledSamples {
        LabelledSamples::new(&paper(Base::FixMatch(FixMatch::default())), &[3, 5])
    }

    #[test]
    fn aum_includes_the_visit() {
        let mut samples = labelled_samples();
        samples.visit(&[3, 3], &[1.0, 2.0]).unwrap();
        assert_eq!(samples.aum(&[3, 5]).unwrap(), Some(vec![1.5, 0.0]));
        assert!(samples.visit(&[4], &[0.0]).is_err());
    }

    /// One sample in two groups: undone in reverse order.
    #[test]
    fn undo_restores_labelled_visits() {
        let mut samples = labelled_samples();
        samples.visit(&[5, 3], &[0.3, 1.0]).unwrap();
        samples.commit();
        let before = samples.clone();
        samples.visit(&[5, 5, 3], &[0.1, 0.7, -2.0]).unwrap();
        assert_ne!(samples.aum(&[5]).unwrap(), before.aum(&[5]).unwrap());
        samples.undo();
        assert_eq!(samples, before);
    }

    #[test]
    fn methods_without_guidance_keep_nothing() {
        let method = paper(Base::FixMatch(FixMatch::default())).without_mixup();
        let mut samples = LabelledSamples::new(&method, &[3]);
        samples.visit(&[9], &[1.0]).unwrap();
        assert_eq!(samples.aum(&[9]).unwrap(), None);
    }
}
