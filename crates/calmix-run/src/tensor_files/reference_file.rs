//! The reference of a model: safetensors with `logits` (f32, labels × classes), `labels` (u32) and, if the labels have groups,
//! `groups` (u32); with features of unlabelled samples also `features` (f32, samples × dimensions), `class_means` and, if the
//! features are not the first numbers of a projected vector, `directions`. NumPy can read it without calmix.

use calmix_io::error::FileProblem;
use calmix_metrics::held_out::LabelLogits;
use calmix_metrics::shift::{Reference, ReferenceFeatures, ShiftDetector};

use crate::tensor_files::tensors::{self, Tensors, tensor};

const LOGITS: &str = "logits";
const LABELS: &str = "labels";
const GROUPS: &str = "groups";
const FEATURES: &str = "features";
const CLASS_MEANS: &str = "class_means";
const DIRECTIONS: &str = "directions";

/// The largest size of a reference in bytes.
pub const MAX_REFERENCE_BYTES: u64 = 2 << 20;

/// Encodes a reference; `None` if it has neither labels nor features, or would exceed [`MAX_REFERENCE_BYTES`] even without
/// features. Features that do not fit are left out.
pub fn to_bytes(reference: &Reference) -> Result<Option<Vec<u8>>, FileProblem> {
    for features in [reference.features.as_ref(), None] {
        if reference.labels.is_empty() && features.is_none() {
            return Ok(None);
        }
        let bytes = encode(&reference.labels, features)?;
        if bytes.len() as u64 <= MAX_REFERENCE_BYTES {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

fn encode(labels: &LabelLogits, features: Option<&ReferenceFeatures>) -> Result<Vec<u8>, FileProblem> {
    let n = labels.len();
    let mut all =
        vec![tensor(LOGITS, &[n, labels.classes], &labels.logits), tensor(LABELS, &[n], &labels.labels)];
    if !labels.groups.is_empty() {
        all.push(tensor(GROUPS, &[n], &labels.groups));
    }
    if let Some(features) = features {
        let width = features.dimensions.max(1);
        all.push(tensor(FEATURES, &[features.len(), width], &features.rows));
        all.push(tensor(CLASS_MEANS, &[features.class_means.len() / width, width], &features.class_means));
        if !features.directions.is_empty() {
            let shape = [width, features.directions.len() / width];
            all.push(tensor(DIRECTIONS, &shape, &features.directions));
        }
    }
    tensors::write(all, None).map_err(|error| FileProblem::Format(error.to_string()))
}

/// Decodes the reference of a model of `classes` classes. `width` is the length of its projected vectors; `None` if the features
/// come from an exported model, which has computed them from such vectors.
///
/// # Errors
/// If it is not safetensors, has other tensors, or its numbers are not plausible.
pub fn from_bytes(file: &[u8], classes: usize, width: Option<usize>) -> Result<ShiftDetector, FileProblem> {
    let format = |problem: &dyn std::fmt::Display| FileProblem::Format(format!("not a reference: {problem}"));
    let tensors = Tensors::read(file).map_err(|error| format(&error))?;
    let reference = decode(&tensors, classes).map_err(|error| format(&error))?;
    if let Some(features) = &reference.features {
        let (means, directions) = (features.class_means.len(), features.directions.len());
        if means != classes * features.dimensions {
            return Err(format(&"it does not have a mean for each class"));
        }
        let is_of = |width: usize| match directions {
            0 => features.dimensions <= width,
            directions => directions == features.dimensions.saturating_mul(width),
        };
        if let Some(width) = width.filter(|&width| !is_of(width)) {
            return Err(format(&format_args!("its features are not those of vectors of {width} numbers")));
        }
    }
    ShiftDetector::new(reference).map_err(|error| format(&error))
}

fn decode(tensors: &Tensors<'_>, classes: usize) -> Result<Reference, crate::error::RunError> {
    let n = tensors.rows(LABELS)?;
    let labels = LabelLogits {
        classes,
        logits: tensors.numbers(LOGITS, &[n, classes])?,
        labels: tensors.numbers(LABELS, &[n])?,
        groups: if tensors.has(GROUPS) { tensors.numbers(GROUPS, &[n])? } else { Vec::new() },
    };
    if !tensors.has(FEATURES) {
        return Ok(Reference { labels, features: None });
    }
    let [samples, dimensions] = tensors.matrix_shape(FEATURES)?;
    let [means, _] = tensors.matrix_shape(CLASS_MEANS)?;
    let mut directions = Vec::new();
    if tensors.has(DIRECTIONS) {
        let [_, width] = tensors.matrix_shape(DIRECTIONS)?;
        directions = tensors.numbers(DIRECTIONS, &[dimensions, width])?;
    }
    let features = ReferenceFeatures {
        dimensions,
        rows: tensors.numbers(FEATURES, &[samples, dimensions])?,
        class_means: tensors.numbers(CLASS_MEANS, &[means, dimensions])?,
        directions,
    };
    Ok(Reference { labels, features: Some(features) })
}

#[cfg(test)]
mod tests {
    use calmix_core::rng::{Domain, Seed};

    use super::*;

    fn reference(directions: usize) -> Reference {
        let mut stream = Seed(1).stream(Domain::Init, 0, 0);
        let mut numbers = |count: usize| (0..count).map(|_| stream.normal() as f32).collect::<Vec<f32>>();
        let features = ReferenceFeatures {
            dimensions: 4,
            rows: numbers(4 * 300),
            class_means: numbers(4 * 3),
            directions: numbers(4 * directions),
        };
        let labels = LabelLogits {
            classes: 3,
            logits: numbers(60),
            labels: (0..20).map(|n| n % 3).collect(),
            groups: Vec::new(),
        };
        Reference { labels, features: Some(features) }
    }

    #[test]
    fn reference_is_read_back() {
        for (directions, width) in [(0, 9), (9, 9)] {
            let reference = reference(directions);
            let file = to_bytes(&reference).unwrap().unwrap();
            assert_eq!(*from_bytes(&file, 3, Some(width)).unwrap().reference(), reference);
            for (classes, width) in [(2, width), (3, 3), (4, width)] {
                assert!(
                    from_bytes(&file, classes, Some(width)).is_err(),
                    "{classes} classes, {width} numbers"
                );
            }
        }
        let labels = Reference { features: None, ..reference(0) };
        let file = to_bytes(&labels).unwrap().unwrap();
        assert_eq!(*from_bytes(&file, 3, Some(1)).unwrap().reference(), labels);
        assert!(to_bytes(&Reference::default()).unwrap().is_none());
        // Without the features it is small enough.
        let large = reference(1 << 20);
        let file = to_bytes(&large).unwrap().unwrap();
        assert_eq!(from_bytes(&file, 3, Some(1)).unwrap().reference().features, None);
    }

    #[test]
    fn damaged_reference_is_refused() {
        let file = to_bytes(&reference(0)).unwrap().unwrap();
        for end in [0, 7, 8, 100, file.len() - 1] {
            assert!(from_bytes(&file[..end], 3, Some(9)).is_err(), "{end}");
        }
        for (place, byte) in [(8, b'x'), (file.len() - 1, 0x7f)] {
            let mut file = file.clone();
            file[place] = byte;
            // The last number becomes NaN or another one; the header no longer is JSON.
            let _ = from_bytes(&file, 3, Some(9));
        }
        let mut damaged = reference(0);
        damaged.labels.labels[4] = 3;
        let file = to_bytes(&damaged).unwrap().unwrap();
        let error = from_bytes(&file, 3, Some(9)).unwrap_err().to_string();
        assert!(error.contains("label 3"), "{error}");
        let mut damaged = reference(0);
        damaged.features.as_mut().unwrap().rows[2] = f32::NAN;
        let file = to_bytes(&damaged).unwrap().unwrap();
        assert!(from_bytes(&file, 3, Some(9)).unwrap_err().to_string().contains("reference feature 2"));
    }
}
