//! The files of a head: its weights, and the projection from features to its inputs.

use calmix_head::model::scaled_weights;
use calmix_head::network::{Head, HeadShape};
use calmix_head::projection::Projection;
use calmix_io::error::{FileError, FileProblem};
use calmix_metrics::calibrator::temperature::Temperature;
use serde_json::json;

use crate::tensor_files::tensors::{self, Tensors, tensor};

const MEAN: &str = "features.mean";
const ROTATION: &str = "features.rotation";
const SETS: &str = "features.sets";
/// The space for the header of a file, in bytes.
const HEADER: u64 = 64 << 10;

/// Encodes the weights of a head as safetensors: `classifier.weight` and `classifier.bias`, and the same for `hidden` if it
/// has a hidden layer.
pub fn head_bytes(head: &Head) -> Result<Vec<u8>, FileError> {
    let mut tensors = Vec::new();
    for parameter in head.shape().parameters() {
        let numbers = head.numbers().get(parameter.range).unwrap_or_default();
        tensors.push(tensor(parameter.name, &parameter.shape, numbers));
    }
    tensors::write(tensors, None).map_err(|error| FileError::new("model.safetensors", in_words(&error)))
}

/// Decodes a head from [`head_bytes`].
pub fn read_head(file: &[u8], shape: HeadShape) -> Result<Head, FileProblem> {
    let tensors = Tensors::read(file).map_err(|error| in_words(&error))?;
    // Checked before memory is allocated, because the shape may come from an untrusted source.
    if shape.numbers() > file.len() / size_of::<f32>() {
        return Err(FileProblem::Format(format!(
            "too short for the {} weights of the head",
            shape.numbers()
        )));
    }
    let mut numbers = vec![0.0; shape.numbers()];
    for parameter in shape.parameters() {
        let values = numbers.get_mut(parameter.range).unwrap_or_default();
        tensors.numbers_into(parameter.name, &parameter.shape, values).map_err(|error| in_words(&error))?;
        check_finite(parameter.name, values)?;
    }
    Head::new(shape, numbers).map_err(|error| in_words(&error))
}

/// Returns the maximum size of a head's file in bytes, without the metadata of a model.
pub fn max_head_bytes(shape: HeadShape) -> u64 {
    HEADER + (shape.numbers() * size_of::<f32>()) as u64
}

/// Encodes a projection as safetensors: `features.mean`, `features.rotation` if it reduces the dimensions, and the widths
/// `features.sets` if vectors consist of several sets of features.
pub fn projection_bytes(projection: &Projection) -> Result<Vec<u8>, FileError> {
    let width = projection.width();
    // PyTorch reads i32, but not every version u32.
    let sets: Vec<i32> =
        projection.sets().iter().map(|&set| i32::try_from(set).unwrap_or(i32::MAX)).collect();
    let mut tensors = vec![tensor(MEAN, &[width], projection.mean())];
    if !projection.rotation().is_empty() {
        tensors.push(tensor(ROTATION, &[projection.dimensions(), width], projection.rotation()));
    }
    if sets.len() > 1 {
        tensors.push(tensor(SETS, &[sets.len()], &sets));
    }
    tensors::write(tensors, None).map_err(|error| FileError::new("projection.safetensors", in_words(&error)))
}

/// Decodes a projection from [`projection_bytes`].
pub fn read_projection(file: &[u8], width: usize, dimensions: usize) -> Result<Projection, FileProblem> {
    let tensors = Tensors::read(file).map_err(|error| in_words(&error))?;
    let mean = tensors.numbers(MEAN, &[width]).map_err(|error| in_words(&error))?;
    check_finite(MEAN, &mean)?;
    let mut rotation = Vec::new();
    if dimensions > 0 && dimensions < width {
        rotation = tensors.numbers(ROTATION, &[dimensions, width]).map_err(|error| in_words(&error))?;
        check_finite(ROTATION, &rotation)?;
    }
    let projection = Projection::new(mean, rotation).map_err(|error| in_words(&error))?;
    if !tensors.has(SETS) {
        return Ok(projection);
    }
    let count = tensors.rows(SETS).map_err(|error| in_words(&error))?;
    let sets: Vec<i32> = tensors.numbers(SETS, &[count]).map_err(|error| in_words(&error))?;
    let sets: Vec<usize> = sets.iter().map(|&set| usize::try_from(set).unwrap_or_default()).collect();
    projection.with_sets(&sets).map_err(|error| in_words(&error))
}

/// Returns the maximum size of a projection's file in bytes, for this number of features.
pub fn max_projection_bytes(width: usize) -> u64 {
    HEADER + ((width + 1) * width * size_of::<f32>()) as u64
}

/// Encodes a linear head with its projection and temperature as one safetensors file for programs without calmix: `mean`,
/// `weight` and `bias`, with `logits = weight·(x − mean)/max(‖x − mean‖, 1e-12) + bias`. The metadata `calmix` are JSON with
/// `classes` and `temperature`, which is `null` if no temperature is folded in; other calibrators cannot be. If vectors consist of
/// several sets of features, `sets` has their widths: the part `x − mean` of each is then divided by its own length. Returns
/// `None` if the head has a hidden layer, or if classes × features is far more numbers than the model has.
pub fn folded_head_bytes(
    projection: &Projection,
    head: &Head,
    temperature: Option<Temperature>,
    classes: &[String],
) -> Result<Option<Vec<u8>>, FileError> {
    let HeadShape { width, classes: outputs, .. } = head.shape();
    let wrong = |problem: FileProblem| FileError::new("head.safetensors", problem);
    if width != projection.dimensions() {
        let dimensions = projection.dimensions();
        let problem = format!("a head that reads {width} numbers, but a projection to {dimensions}");
        return Err(wrong(FileProblem::Content(problem)));
    }
    let temperature = temperature.map(Temperature::value);
    let scale = 1.0 / temperature.unwrap_or(1.0);
    let of_sets = f64::from(projection.set_scale());
    let Some(weight) = scaled_weights(projection, head, scale * of_sets) else { return Ok(None) };
    let (_, biases) = head.numbers().split_at(outputs * width);
    let features = projection.width();
    let bias: Vec<f32> = biases.iter().map(|&number| (scale * f64::from(number)) as f32).collect();
    let tensors = vec![
        tensor("mean", &[features], projection.mean()),
        tensor("weight", &[outputs, features], &weight),
        tensor("bias", &[outputs], &bias),
    ];
    let mut note = json!({ "classes": classes, "temperature": temperature });
    if projection.sets().len() > 1 {
        note["sets"] = json!(projection.sets());
    }
    let file = tensors::write(tensors, Some(("calmix", note.to_string())));
    file.map(Some).map_err(|error| wrong(in_words(&error)))
}

fn check_finite(name: &str, numbers: &[f32]) -> Result<(), FileProblem> {
    if numbers.iter().all(|number| number.is_finite()) {
        return Ok(());
    }
    Err(FileProblem::Format(format!("`{name}`: a number is infinite or not a number")))
}

fn in_words(error: &dyn std::error::Error) -> FileProblem {
    FileProblem::Format(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use calmix_core::matrix::Matrix;
    use calmix_core::rng::{Domain, Seed};
    use calmix_head::model::HeadModel;
    use safetensors::SafeTensors;

    use super::*;

    #[test]
    fn head_keeps_every_bit_and_another_shape_is_refused() {
        for hidden in [None, Some(4)] {
            let shape = HeadShape { width: 3, hidden, classes: 2 };
            let head = Head::initial(shape, Seed(7));
            let file = head_bytes(&head).unwrap();
            assert!(file.len() as u64 <= max_head_bytes(shape));
            assert_eq!(read_head(&file, shape).unwrap(), head);
            let other = HeadShape { classes: 3, ..shape };
            let problem = read_head(&file, other).unwrap_err().to_string();
            assert!(problem.contains("classifier"), "{problem}");
            let numbers = vec![f32::NAN; shape.numbers()];
            let broken = head_bytes(&Head::new(shape, numbers).unwrap()).unwrap();
            assert!(read_head(&broken, shape).unwrap_err().to_string().contains("not a number"));
        }
    }

    #[test]
    fn projection_keeps_every_bit_and_another_shape_is_refused() {
        let rows: Vec<f32> = (0_u16..40).map(|n| f32::from(n * n % 23)).collect();
        let rows = Matrix::new(&rows, 10, 4).unwrap();
        let stop = AtomicBool::new(false);
        for (dimensions, sets) in [(0, &[4][..]), (2, &[4]), (0, &[1, 3]), (2, &[2, 2])] {
            let projection = Projection::fit_unless(rows, sets, dimensions, &stop).unwrap();
            let file = projection_bytes(&projection).unwrap();
            assert!(file.len() as u64 <= max_projection_bytes(4));
            let again = read_projection(&file, 4, dimensions).unwrap();
            assert_eq!(again, projection);
            assert_eq!(again.apply(rows).unwrap(), projection.apply(rows).unwrap());
            assert!(read_projection(&file, 4, 3).is_err() && read_projection(&file, 3, dimensions).is_err());
        }
        assert!(read_projection(b"", 4, 2).is_err());
    }
    /// The formula of the folded file gives the logits of the head divided by the temperature.
    #[test]
    fn folded_head_has_the_same_logits() {
        let mut stream = Seed(11).stream(Domain::Init, 0, 9);
        let rows: Vec<f32> = (0..50 * 12).map(|_| (3.0 * stream.normal() + 1.0) as f32).collect();
        let vectors = Matrix::new(&rows, 50, 12).unwrap();
        let names = ["a", "b", "c"].map(str::to_owned);
        let stop = AtomicBool::new(false);
        for (dimensions, temperature, sets) in
            [(0, None, vec![12]), (5, Some(1.7), vec![12]), (5, Some(1.7), vec![4, 2, 6])]
        {
            let projection = Projection::fit_unless(vectors, &sets, dimensions, &stop).unwrap();
            let shape = HeadShape { width: projection.dimensions(), hidden: None, classes: 3 };
            let numbers = (0..shape.numbers()).map(|_| (4.0 * stream.normal()) as f32).collect();
            let head = Head::new(shape, numbers).unwrap();
            let wanted = HeadModel::new(projection.clone(), head.clone()).unwrap().logits(&rows).unwrap();
            let fitted = temperature.map(|value| Temperature::new(value).unwrap());
            let file = folded_head_bytes(&projection, &head, fitted, &names).unwrap().unwrap();
            let note = SafeTensors::read_metadata(&file).unwrap().1.metadata().clone().unwrap();
            let note: serde_json::Value = serde_json::from_str(&note["calmix"]).unwrap();
            let mut wanted_note = json!({"classes": names, "temperature": temperature});
            if sets.len() > 1 {
                wanted_note["sets"] = json!(sets);
            }
            assert_eq!(note, wanted_note);
            let tensors = Tensors::read(&file).unwrap();
            let mean: Vec<f32> = tensors.numbers("mean", &[12]).unwrap();
            let weight: Vec<f32> = tensors.numbers("weight", &[3, 12]).unwrap();
            let bias: Vec<f32> = tensors.numbers("bias", &[3]).unwrap();
            for (x, wanted) in rows.chunks_exact(12).zip(wanted.chunks_exact(3)) {
                let mut centred: Vec<f32> = x.iter().zip(&mean).map(|(x, mean)| x - mean).collect();
                let mut start = 0;
                for set in &sets {
                    let part = &mut centred[start..start + set];
                    let length = part.iter().map(|number| number * number).sum::<f32>().sqrt().max(1e-12);
                    for number in part {
                        *number /= length;
                    }
                    start += set;
                }
                for (n, wanted) in wanted.iter().enumerate() {
                    let weight = &weight[12 * n..12 * (n + 1)];
                    let product: f32 = centred.iter().zip(weight).map(|(x, weight)| x * weight).sum();
                    let logit = product + bias[n];
                    let wanted = wanted / temperature.unwrap_or(1.0) as f32;
                    assert!((logit - wanted).abs() < 1e-5, "{logit}, not {wanted}");
                }
            }
            let wrong = Head::initial(HeadShape { width: 7, ..shape }, Seed(1));
            assert!(folded_head_bytes(&projection, &wrong, fitted, &names).is_err());
        }
        // A few directions of many features would take 84 GB.
        let wide = Projection::new(vec![0.5; 1 << 20], vec![1e-3; 1 << 20]).unwrap();
        let classes = HeadShape { width: 1, hidden: None, classes: 10_000 };
        assert!(folded_head_bytes(&wide, &Head::initial(classes, Seed(1)), None, &[]).unwrap().is_none());
        let hidden = Head::initial(HeadShape { width: 12, hidden: Some(4), classes: 3 }, Seed(1));
        let projection = Projection::fit(vectors, 0).unwrap();
        assert!(folded_head_bytes(&projection, &hidden, None, &names).unwrap().is_none());
    }
}
