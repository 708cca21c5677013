//! The files of a head: its weights, and the projection of features to the vectors that it reads.

use calmix_head::network::{Head, HeadShape};
use calmix_head::projection::Projection;
use calmix_io::error::{FileError, FileProblem};

use crate::tensors::{self, Tensors, tensor};

const MEAN: &str = "features.mean";
const ROTATION: &str = "features.rotation";
/// Bytes that the header of a file may have.
const HEADER: u64 = 64 << 10;

/// The weights of a head as safetensors: `classifier.weight` and `classifier.bias`, and those of `hidden` if it has that layer.
///
/// # Errors
/// If the header cannot be written.
pub fn head_bytes(head: &Head) -> Result<Vec<u8>, FileError> {
    let mut tensors = Vec::new();
    for parameter in head.shape().parameters() {
        let numbers = head.numbers().get(parameter.place).unwrap_or_default();
        tensors.push(tensor(parameter.name, &parameter.shape, numbers));
    }
    tensors::write(tensors, None).map_err(|error| FileError::new("model.safetensors", in_words(&error)))
}

/// Reads what [`head_bytes`] wrote.
///
/// # Errors
/// If it is not a head of this shape, or a number is not finite.
pub fn read_head(file: &[u8], shape: HeadShape) -> Result<Head, FileProblem> {
    let tensors = Tensors::read(file).map_err(|error| in_words(&error))?;
    let mut numbers = vec![0.0; shape.numbers()];
    for parameter in shape.parameters() {
        let own = numbers.get_mut(parameter.place).unwrap_or_default();
        tensors.numbers_into(parameter.name, &parameter.shape, own).map_err(|error| in_words(&error))?;
        check_finite(parameter.name, own)?;
    }
    Head::new(shape, numbers).map_err(|error| in_words(&error))
}

/// Bytes of the longest file of such a head, without the metadata of a model.
pub fn longest_head(shape: HeadShape) -> u64 {
    HEADER + (shape.numbers() * size_of::<f32>()) as u64
}

/// A projection as safetensors: `features.mean`, and `features.rotation` if it keeps fewer dimensions than there are.
///
/// # Errors
/// If the header cannot be written.
pub fn projection_bytes(projection: &Projection) -> Result<Vec<u8>, FileError> {
    let width = projection.width();
    let mut tensors = vec![tensor(MEAN, &[width], projection.mean())];
    if !projection.rotation().is_empty() {
        tensors.push(tensor(ROTATION, &[projection.dimensions(), width], projection.rotation()));
    }
    tensors::write(tensors, None).map_err(|error| FileError::new("projection.safetensors", in_words(&error)))
}

/// Reads what [`projection_bytes`] wrote.
///
/// # Errors
/// If it is not a projection of `width` features to that number of dimensions (0 for all), or a number is not finite.
pub fn read_projection(file: &[u8], width: usize, dimensions: usize) -> Result<Projection, FileProblem> {
    let tensors = Tensors::read(file).map_err(|error| in_words(&error))?;
    let mean = tensors.numbers(MEAN, &[width]).map_err(|error| in_words(&error))?;
    check_finite(MEAN, &mean)?;
    let mut rotation = Vec::new();
    if dimensions > 0 && dimensions < width {
        rotation = tensors.numbers(ROTATION, &[dimensions, width]).map_err(|error| in_words(&error))?;
        check_finite(ROTATION, &rotation)?;
    }
    Projection::new(mean, rotation).map_err(|error| in_words(&error))
}

/// Bytes of the longest file of a projection of that many features.
pub fn longest_projection(width: usize) -> u64 {
    HEADER + ((width + 1) * width * size_of::<f32>()) as u64
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
    use calmix_core::matrix::Matrix;
    use calmix_core::rng::Seed;

    use super::*;

    #[test]
    fn head_keeps_every_bit_and_another_shape_is_refused() {
        for hidden in [None, Some(4)] {
            let shape = HeadShape { width: 3, hidden, classes: 2 };
            let head = Head::initial(shape, Seed(7));
            let file = head_bytes(&head).unwrap();
            assert!(file.len() as u64 <= longest_head(shape));
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
        for dimensions in [0, 2] {
            let projection = Projection::fit(rows, dimensions).unwrap();
            let file = projection_bytes(&projection).unwrap();
            assert!(file.len() as u64 <= longest_projection(4));
            let again = read_projection(&file, 4, dimensions).unwrap();
            assert_eq!(again, projection);
            assert_eq!(again.apply(rows).unwrap(), projection.apply(rows).unwrap());
            assert!(read_projection(&file, 4, 3).is_err() && read_projection(&file, 3, dimensions).is_err());
        }
        assert!(read_projection(b"", 4, 2).is_err());
    }
}
