//! The state of each unlabelled sample: APM and FlexMatch's label. Labelled samples are in
//! [`labelled`].
//!
//! An unlabelled sample belongs to one shard of the step, which always draws it, so its state stays with that shard. It
//! is found by its slot, the sample's position within its shard.

pub mod labelled;

use serde::{Deserialize, Serialize};

use crate::error::CoreError;
use crate::margin::MarginStore;
use crate::matrix::Matrix;
use crate::method::Method;
use crate::pseudo::Base;
use crate::softmax::argmax;

/// The state of the unlabelled samples of a process, as far as the method needs it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Samples {
    /// The samples of each shard that this process runs.
    pub shards: Vec<ShardSamples>,
    /// The values that the visits of this step replaced, oldest first.
    undo: Vec<Undo>,
    /// The pseudo-margins of [`Undo::Margins`], one row after the other.
    undo_margins: Vec<f32>,
}

/// The unlabelled samples of one shard, by slot.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardSamples {
    /// APM, if pairs are guided by difficulty.
    pub margins: Option<MarginStore>,
    /// FlexMatch's last confident label of each sample, −1 if there was none.
    pub selected: Option<Vec<i32>>,
}

/// The result of a visit of a shard's unlabelled rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ShardVisit {
    /// APM of each row at its pseudo-label, including all visits of the step; `None` if it is not averaged.
    pub apm: Option<Vec<f32>>,
    /// The change of FlexMatch's histogram, in samples per class; empty for other methods.
    pub selected: Vec<f32>,
}

/// The state of a sample before a visit.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Undo {
    /// Shard, slot and visits; the row of margins is with those of other samples.
    Margins(usize, u64, u32),
    /// Shard, slot and label.
    Selected(usize, usize, i32),
}

impl Samples {
    /// Returns the state before the first step, for shards of `lengths` samples.
    pub fn new(method: &Method, classes: usize, lengths: impl IntoIterator<Item = usize>) -> Self {
        let guidance = method.guidance();
        let shard = |samples| ShardSamples {
            margins: guidance.map(|guidance| MarginStore::new(guidance.averaging, samples, classes)),
            selected: matches!(method.base, Base::FlexMatch(_)).then(|| vec![-1; samples]),
        };
        Self { shards: lengths.into_iter().map(shard).collect(), ..Self::default() }
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

    /// Updates the state with the logits of a shard's unlabelled rows; the pseudo-margins only if `margins`.
    ///
    /// # Errors
    /// If there is no such shard or slot, or a row does not have C logits.
    pub fn visit_unlabelled(
        &mut self,
        method: &Method,
        shard: usize,
        slots: &[u64],
        logits: Matrix<'_>,
        margins: bool,
    ) -> Result<ShardVisit, CoreError> {
        let undo = &mut self.undo;
        let samples = self.shards.get_mut(shard).ok_or(CoreError::NotKept { what: "this shard" })?;
        let rows = || slots.iter().copied().zip(logits.iter());
        let mut visit = ShardVisit::default();
        if margins {
            let store = samples.margins.as_mut().ok_or(CoreError::NotKept { what: "pseudo-margins" })?;
            for (slot, row) in rows() {
                let (visits, apm) = store.sample(slot)?;
                self.undo_margins.extend_from_slice(apm);
                undo.push(Undo::Margins(shard, slot, visits));
                store.visit(slot, row)?;
            }
            let apm = rows().map(|(slot, row)| store.apm(slot, argmax(row) as u32));
            visit.apm = Some(apm.collect::<Result<_, _>>()?);
        }
        if let Base::FlexMatch(rule) = &method.base {
            let labels = samples.selected.as_mut().ok_or(CoreError::NotKept { what: "selected labels" })?;
            visit.selected = vec![0.0; logits.width()];
            for (slot, row) in rows() {
                let label = usize::try_from(slot).ok().and_then(|at| Some((at, labels.get_mut(at)?)));
                let (at, label) = label.ok_or(CoreError::UnknownSample { sample: slot })?;
                let Some(new) = rule.selects(row) else { continue };
                undo.push(Undo::Selected(shard, at, *label));
                for (class, by) in [(Some(new), 1.0), (u32::try_from(*label).ok(), -1.0)] {
                    if let Some(change) = class.and_then(|class| visit.selected.get_mut(class as usize)) {
                        *change += by;
                    }
                }
                *label = i32::try_from(new)
                    .map_err(|_| CoreError::NotKept { what: "labels of such a large class" })?;
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
                Undo::Margins(shard, slot, visits) => {
                    let store = self.shards.get_mut(shard).and_then(|shard| shard.margins.as_mut());
                    if let Some(store) = store {
                        let row = self.undo_margins.len().saturating_sub(store.parts().classes);
                        // It cannot fail: the sample existed when it was visited.
                        let _ = store.put_back(slot, visits, &self.undo_margins[row..]);
                        self.undo_margins.truncate(row);
                    }
                }
                Undo::Selected(shard, at, before) => {
                    let labels = self.shards.get_mut(shard).and_then(|shard| shard.selected.as_mut());
                    if let Some(label) = labels.and_then(|labels| labels.get_mut(at)) {
                        *label = before;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::paper;
    use crate::pseudo::FlexMatch;

    fn flexmatch() -> Method {
        paper(Base::FlexMatch(FlexMatch::default()))
    }

    #[test]
    fn more_than_there_is_memory_for_is_an_error() {
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

    fn visit(samples: &mut Samples, shard: usize, slots: &[u64], logits: &[f32]) -> ShardVisit {
        let logits = Matrix::new(logits, slots.len(), 2).unwrap();
        samples.visit_unlabelled(&flexmatch(), shard, slots, logits, true).unwrap()
    }

    #[test]
    fn labels_are_overwritten_never_forgotten() {
        let mut samples = samples();
        let sure = [9.0, 0.0, 0.0, 9.0, 0.0, 0.1];
        // Slot 1 is selected for class 0 and then for class 1 in one batch; slot 2 is not sure enough.
        assert_eq!(visit(&mut samples, 0, &[1, 1, 2], &sure).selected, [0.0, 1.0]);
        assert_eq!(visit(&mut samples, 0, &[1, 2], &[0.1, 0.0, 9.0, 0.0]).selected, [1.0, 0.0]);
        assert_eq!(samples.shards[0].selected, Some(vec![-1, 1, 0, -1]));
        assert_eq!(samples.shards[1].selected, Some(vec![-1; 3]));
    }

    #[test]
    fn values_include_the_visit_itself() {
        let mut samples = samples();
        let apm = visit(&mut samples, 1, &[0], &[2.0, 0.0]).apm.unwrap();
        assert!((apm[0] - 0.997 * 2.0).abs() < 1e-6);
    }

    /// One sample twice in a batch: undone in reverse order.
    #[test]
    fn a_step_is_undone_whole() {
        let mut samples = samples();
        visit(&mut samples, 0, &[1, 0], &[9.0, 0.0, 0.1, 0.0]);
        samples.commit();
        let before = samples.clone();
        visit(&mut samples, 0, &[1, 1, 2], &[0.0, 9.0, 9.0, 0.0, 0.0, 9.0]);
        visit(&mut samples, 1, &[2], &[0.0, 9.0]);
        assert_ne!(samples.shards, before.shards);
        samples.undo();
        assert_eq!(samples, before);
    }

    #[test]
    fn what_is_not_kept_is_said() {
        let mut none = Samples::new(&flexmatch().without_mixup(), 2, [4]);
        let logits = Matrix::new(&[0.0; 2], 1, 2).unwrap();
        let error = none.visit_unlabelled(&flexmatch(), 0, &[0], logits, true).unwrap_err().to_string();
        assert_eq!(error, "this state does not keep pseudo-margins: it belongs to another method");
        assert!(none.visit_unlabelled(&flexmatch(), 0, &[9], logits, false).is_err());
        assert!(none.visit_unlabelled(&flexmatch(), 1, &[0], logits, false).is_err());
    }
}
