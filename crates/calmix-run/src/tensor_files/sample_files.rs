//! The sample state as files of a checkpoint: one for the labelled samples, and one per micro-batch of unlabelled samples.

use calmix_core::error::CoreError;
use calmix_core::margin::{LabelledMargins, LabelledParts, MarginParts, MarginStore};
use calmix_core::samples::UnlabelledSamples;

use crate::error::RunError;
use crate::tensor_files::tensors::{self, Tensors, tensor};

/// The space for names and shapes in a file of samples, with some to spare.
const HEADER: u64 = 4 << 10;

/// Returns the maximum size of a file that [`read_labelled`] accepts for `fresh`, in bytes.
pub fn max_labelled_bytes(fresh: Option<&LabelledMargins>) -> u64 {
    HEADER + 20 * fresh.map_or(0, |store| store.parts().ids.len() as u64)
}

/// Returns the maximum size of a file that [`read_unlabelled`] accepts for `fresh`, in bytes.
pub fn max_micro_batch_bytes(fresh: &UnlabelledSamples) -> u64 {
    let numbers = |store: &MarginStore| store.parts().visits.len() + store.parts().values.len();
    let margins = fresh.margins.as_ref().map_or(0, numbers);
    HEADER + 4 * (margins + fresh.selected.as_ref().map_or(0, Vec::len)) as u64
}

/// Encodes the state of the labelled samples.
pub fn write_labelled(store: Option<&LabelledMargins>) -> Result<Vec<u8>, RunError> {
    let mut named = Vec::new();
    if let Some(LabelledParts { ids, averages, visits }) = store.map(LabelledMargins::parts) {
        let n = [ids.len()];
        named.extend([
            tensor("aum.ids", &n, ids),
            tensor("aum", &n, averages),
            tensor("aum.visits", &n, visits),
        ]);
    }
    tensors::write(named, None)
}

/// Decodes the state of the labelled samples from a checkpoint; `fresh` is their state before the first step.
pub fn read_labelled(
    bytes: &[u8],
    fresh: Option<LabelledMargins>,
) -> Result<Option<LabelledMargins>, RunError> {
    let file = Tensors::read(bytes)?;
    let read = |store: LabelledMargins| -> Result<LabelledMargins, RunError> {
        let ids = &store.parts().ids;
        let n = [ids.len()];
        if file.numbers::<u64>("aum.ids", &n)? != *ids {
            return Err(CoreError::Damaged { what: "margins of other labelled samples" }.into());
        }
        let averages = file.numbers("aum", &n)?;
        let visits = file.numbers("aum.visits", &n)?;
        let parts = LabelledParts { ids: ids.clone(), averages, visits };
        Ok(LabelledMargins::from_parts(store.averaging(), parts)?)
    };
    fresh.map(read).transpose()
}

/// Encodes the state of a micro-batch's unlabelled samples.
pub fn write_unlabelled(samples: &UnlabelledSamples) -> Result<Vec<u8>, RunError> {
    let mut named = Vec::new();
    if let Some(store) = &samples.margins {
        let MarginParts { classes, visits, values, .. } = store.parts();
        let n = visits.len();
        named.extend([tensor("apm.visits", &[n], visits), tensor("apm.values", &[n, *classes], values)]);
    }
    if let Some(selected) = &samples.selected {
        named.push(tensor("selected", &[selected.len()], selected));
    }
    tensors::write(named, None)
}

/// Decodes the state of a micro-batch from a checkpoint; `fresh` is its state before the first step.
pub fn read_unlabelled(bytes: &[u8], fresh: UnlabelledSamples) -> Result<UnlabelledSamples, RunError> {
    let file = Tensors::read(bytes)?;
    let UnlabelledSamples { margins, selected } = fresh;
    let margins = margins.map(|store| -> Result<_, RunError> {
        let mut parts = MarginParts::from(store);
        let n = parts.visits.len();
        let classes = parts.classes;
        file.numbers_into("apm.visits", &[n], &mut parts.visits)?;
        file.numbers_into("apm.values", &[n, classes], &mut parts.values)?;
        Ok(parts.try_into()?)
    });
    let selected = selected.map(|labels| file.numbers("selected", &[labels.len()]));
    Ok(UnlabelledSamples { margins: margins.transpose()?, selected: selected.transpose()? })
}

#[cfg(test)]
mod tests {
    use calmix_core::matrix::Matrix;
    use calmix_core::method::Method;
    use calmix_core::preset::paper;
    use calmix_core::pseudo::{Base, FlexMatch};
    use calmix_core::samples::LabelledSamples;
    use calmix_core::samples::Samples;

    use super::*;

    fn method() -> Method {
        paper(Base::FlexMatch(FlexMatch::default()))
    }

    #[test]
    fn sample_state_round_trips() {
        let fresh = |ids: &[u64]| LabelledSamples::new(&method(), ids);
        let mut labelled = fresh(&[3, 5]);
        labelled.visit(&[5, 5], &[0.3, 2.0]).unwrap();
        let file = write_labelled(labelled.margins.as_ref()).unwrap();
        assert_eq!(read_labelled(&file, fresh(&[3, 5]).margins).unwrap(), labelled.margins);
        assert!(file.len() as u64 <= max_labelled_bytes(labelled.margins.as_ref()));
        assert!(read_labelled(&file, fresh(&[3, 6]).margins).is_err(), "other samples");

        let fresh = |classes| Samples::new(&method(), classes, [8]);
        let mut samples = fresh(2);
        let logits = [9.0, 0.0, 1.0, 0.5];
        let logits = Matrix::new(&logits, 2, 2).unwrap();
        samples.visit_unlabelled(&method(), 0, &[7, 0], logits, true).unwrap();
        samples.commit();
        let micro_batch = write_unlabelled(&samples.micro_batches[0]).unwrap();
        assert_eq!(
            read_unlabelled(&micro_batch, fresh(2).micro_batches.remove(0)).unwrap(),
            samples.micro_batches[0]
        );
        assert!(micro_batch.len() as u64 <= max_micro_batch_bytes(&samples.micro_batches[0]));
        assert!(read_unlabelled(&micro_batch, fresh(3).micro_batches.remove(0)).is_err(), "other classes");
        let none = UnlabelledSamples::default();
        assert_eq!(
            read_unlabelled(&write_unlabelled(&none).unwrap(), UnlabelledSamples::default()).unwrap(),
            none
        );
        assert_eq!(read_labelled(&write_labelled(None).unwrap(), None).unwrap(), None);
    }

    /// With a limit that is too low, a run would refuse its own checkpoint; with one that is too high, a forged one could
    /// exhaust memory.
    #[test]
    fn size_limits_fit_the_files() {
        let assert_fits = |longest: u64, file: &[u8]| {
            let spare = longest.checked_sub(file.len() as u64);
            assert!(spare.is_some_and(|spare| spare < HEADER), "{longest} for {}", file.len());
        };
        let ids: Vec<u64> = (0..2_000).collect();
        let labelled = LabelledSamples::new(&method(), &ids).margins;
        assert_fits(max_labelled_bytes(labelled.as_ref()), &write_labelled(labelled.as_ref()).unwrap());
        assert_fits(max_labelled_bytes(None), &write_labelled(None).unwrap());
        for classes in [2, 7] {
            let micro_batch = Samples::new(&method(), classes, [2_000]).micro_batches.remove(0);
            assert_fits(max_micro_batch_bytes(&micro_batch), &write_unlabelled(&micro_batch).unwrap());
            let margins = UnlabelledSamples { selected: None, ..micro_batch.clone() };
            assert_fits(max_micro_batch_bytes(&margins), &write_unlabelled(&margins).unwrap());
            let selected = UnlabelledSamples { margins: None, ..micro_batch };
            assert_fits(max_micro_batch_bytes(&selected), &write_unlabelled(&selected).unwrap());
        }
    }
}
