//! The state of each labelled sample: its AUM.
//!
//! Labelled samples are few, and any shard may draw them: every process keeps all of them and includes the visits of all
//! groups.

use crate::error::CoreError;
use crate::margin::LabelledMargins;
use crate::method::Method;
use crate::mixup::Guidance;

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

    /// Adds the margins of the labelled rows of all groups, in the order of groups, shards and rows.
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
            let _ = store.put_back(id, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::paper;
    use crate::pseudo::{Base, FixMatch};

    fn samples() -> LabelledSamples {
        LabelledSamples::new(&paper(Base::FixMatch(FixMatch::default())), &[3, 5])
    }

    #[test]
    fn values_include_the_visit_itself() {
        let mut samples = samples();
        samples.visit(&[3, 3], &[1.0, 2.0]).unwrap();
        assert_eq!(samples.aum(&[3, 5]).unwrap(), Some(vec![1.5, 0.0]));
        assert!(samples.visit(&[4], &[0.0]).is_err());
    }

    /// One sample in two groups: undone in reverse order.
    #[test]
    fn a_step_is_undone_whole() {
        let mut samples = samples();
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
