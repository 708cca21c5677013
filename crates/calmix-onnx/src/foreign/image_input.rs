//! The input of a foreign model that takes the images.

use super::ForeignModel;
use super::port::{ForeignPort, listed};
use super::problem::ForeignProblem;
use crate::tensor::ElementType;

const MAX_ROWS: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageLayout {
    /// (batch, channels, rows, columns), as in PyTorch.
    Nchw,
    /// (batch, rows, columns, channels), as in TensorFlow.
    Nhwc,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageInput {
    pub name: String,
    pub layout: ImageLayout,
    /// The number of images per batch; `None` for any number. A model that was exported with a fixed batch, usually of one, runs
    /// only on exactly that number: the caller splits its images and pads the last batch.
    pub rows: Option<usize>,
    /// The numbers of rows and columns of pixels; `None` if the model takes several sizes, which a file does not list.
    pub side: Option<(u32, u32)>,
    pub element: ElementType,
}

impl ForeignModel<'_> {
    /// Returns the input for the images: the only one, with four dimensions, one of which is three channels. If the channels are
    /// not declared, the layout is NCHW.
    pub fn image_input(&self) -> Result<ImageInput, ForeignProblem> {
        let refused = || ForeignProblem::Inputs { inputs: listed(&self.inputs) };
        let [port] = self.inputs.as_slice() else { return Err(refused()) };
        let dimensions = port.dimensions.as_ref().ok_or_else(refused)?;
        let &[rows, second, third, fourth] = dimensions.as_slice() else { return Err(refused()) };
        let (layout, pixels) = match (second, fourth) {
            (Some(3), _) => (ImageLayout::Nchw, [third, fourth]),
            (_, Some(3)) => (ImageLayout::Nhwc, [second, third]),
            // Optimum declares no dimension, and exports models of PyTorch.
            (None, _) => (ImageLayout::Nchw, [third, fourth]),
            _ => {
                let problem = "has no dimension of three channels. Export the model again with images of shape (N, 3, height, width)";
                return Err(image_problem(port, problem));
            }
        };
        let element = port.element.filter(|element| matches!(element, ElementType::F32 | ElementType::F16));
        let element = element.ok_or_else(|| {
            image_problem(port, "is not float32 or float16. Export the model again without its preprocessing")
        })?;
        let side = side(pixels).map_err(|problem| image_problem(port, problem))?;
        let rows = rows.map(usize::try_from).transpose().map_err(|_| refused())?;
        if rows.is_some_and(|rows| rows > MAX_ROWS) {
            let problem = "takes too many images at once. Export the model again with a batch of any size";
            return Err(image_problem(port, problem));
        }
        Ok(ImageInput { name: port.name.clone(), layout, rows, side, element })
    }
}

/// Returns the numbers of rows and columns of pixels, if both are fixed.
fn side(pixels: [Option<u64>; 2]) -> Result<Option<(u32, u32)>, &'static str> {
    match pixels {
        [None, None] => Ok(None),
        [Some(height), Some(width)] if height != width => {
            Err("takes images that are not square. Export the model again with a square image size")
        }
        [Some(side), Some(_)] => {
            let side = u32::try_from(side)
                .map_err(|_| "takes images of an impossible size. Export the model again")?;
            Ok(Some((side, side)))
        }
        _ => Err("fixes only one side of its images. Export the model again with both fixed or both dynamic"),
    }
}

fn image_problem(port: &ForeignPort, problem: &'static str) -> ForeignProblem {
    ForeignProblem::Image { input: port.to_string(), problem }
}
