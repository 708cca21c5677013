//! Features as the rows of batches.

use calmix_core::rng::{Domain, Stream};

use crate::error::{DataError, DataProblem};
use crate::loader::{ViewKey, Views};
use crate::manifest::NO_LABEL;

/// Vectors of samples in memory: sample by sample, each clean, weak and strong.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FeatureTable {
    /// The samples, ascending.
    pub ids: Vec<u64>,
    /// Weak views of each.
    pub weak: u8,
    /// Strong views of each.
    pub strong: u8,
    /// Bytes of a vector.
    pub bytes: usize,
    /// All vectors.
    pub vectors: Vec<u8>,
}

impl FeatureTable {
    fn vector(&self, id: u64, view: usize) -> Option<&[u8]> {
        let row = self.ids.binary_search(&id).ok()?;
        let views = 1 + usize::from(self.weak) + usize::from(self.strong);
        let start = (row * views + view) * self.bytes;
        self.vectors.get(start..start + self.bytes)
    }
}

/// The views of a run whose backbone is frozen.
#[derive(Debug)]
pub struct FeatureViews {
    /// Samples that are trained on.
    pub training: FeatureTable,
    /// Samples for evaluation, in their clean view.
    pub evaluation: FeatureTable,
    /// The class of every sample of the dataset.
    pub labels: Vec<u32>,
}

impl Views for FeatureViews {
    type Scratch = ();

    fn bytes(&self) -> usize {
        self.training.bytes
    }

    fn label(&self, id: u64) -> Result<Option<u32>, DataError> {
        let label = usize::try_from(id).ok().and_then(|id| self.labels.get(id));
        Ok(label.copied().filter(|&label| label != NO_LABEL))
    }

    /// Draws, for each visit, which of the cached views it uses.
    fn training(
        &self,
        key: ViewKey,
        (): &mut (),
        weak: &mut [u8],
        strong: Option<&mut [u8]>,
    ) -> Result<(), DataError> {
        let mut stream: Stream = key.seed.stream(Domain::FeatureView, key.epoch, key.id);
        let mut copy = |first: u8, count: u8, out: &mut [u8]| {
            let view = if count == 0 { 0 } else { usize::from(first) + stream.index(usize::from(count)) };
            let vector = self.training.vector(key.id, view).filter(|vector| vector.len() == out.len());
            let vector = vector.ok_or_else(|| absent(key.id))?;
            out.copy_from_slice(vector);
            Ok(())
        };
        copy(1, self.training.weak, weak)?;
        strong.map_or(Ok(()), |out| copy(1 + self.training.weak, self.training.strong, out))
    }

    fn evaluation(&self, id: u64, (): &mut (), out: &mut [u8]) -> Result<(), DataError> {
        let vector = self.evaluation.vector(id, 0).or_else(|| self.training.vector(id, 0));
        let vector = vector.filter(|vector| vector.len() == out.len()).ok_or_else(|| absent(id))?;
        out.copy_from_slice(vector);
        Ok(())
    }
}

/// The error of a sample without features: its image could not be read when the features were computed.
fn absent(id: u64) -> DataError {
    DataError::View {
        id,
        problem: DataProblem::Format("it has no features, because its image could not be read".into()),
    }
}
