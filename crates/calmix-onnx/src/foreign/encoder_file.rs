//! Reading an encoder that calmix wrote, from a folder that another user may have changed.

use super::ForeignModel;
use super::port::ForeignPort;
use super::problem::ForeignProblem;
use crate::graph::{Graph, GraphForm, Renaming, Value};
use crate::tensor::ElementType;

/// The prefix of all names in an encoder, so that a head can be added without name conflicts.
pub(super) const PREFIX: &str = "encoder/";
pub(super) const IMAGES: &str = "images";
pub(super) const FEATURES: &str = "features";

/// An encoder, which passed the same checks as the foreign model that it was made from.
#[derive(Debug, Clone, PartialEq)]
pub struct EncoderFile<'a> {
    model: ForeignModel<'a>,
    side: u32,
    width: Option<usize>,
    rows: Option<usize>,
}

impl<'a> EncoderFile<'a> {
    /// Reads a file that [`ForeignModel::encoder`] wrote.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ForeignProblem> {
        let model = ForeignModel::read_with(bytes, None)?;
        let [input] = model.inputs() else { return Err(refused("it does not have one input")) };
        let [output] = model.outputs() else { return Err(refused("it does not have one output")) };
        let [rows, side] = images(input).ok_or_else(|| refused("its input is not images"))?;
        let [rows_of_features, width] =
            features(output).ok_or_else(|| refused("its output is not features"))?;
        if rows != rows_of_features {
            return Err(refused("it does not give one vector per image"));
        }
        let side = side.and_then(|side| u32::try_from(side).ok());
        let side = side.ok_or_else(|| refused("it does not declare the size of its images"))?;
        let has_prefix = |name: &str| name.is_empty() || name.starts_with(PREFIX);
        let is_allowed = |name: &str| has_prefix(name) || name == FEATURES;
        let constants = model.initialisers.iter().all(|tensor| has_prefix(tensor.name()));
        let nodes = model.nodes.iter().flat_map(|node| &node.outputs).all(|name| is_allowed(name));
        if !constants || !nodes {
            return Err(refused("its names are not those of an encoder"));
        }
        let as_usize = |size: Option<u64>| size.and_then(|size| usize::try_from(size).ok());
        Ok(Self { side, width: as_usize(width), rows: as_usize(rows), model })
    }

    pub fn side(&self) -> u32 {
        self.side
    }

    /// Returns the length of a feature vector; `None` if only a run can find it.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// Returns the number of images per batch; `None` for any.
    pub fn rows(&self) -> Option<usize> {
        self.rows
    }

    /// Creates a graph that the encoder can be added to.
    pub(crate) fn new_graph(&self) -> Graph<'_> {
        Graph::new(GraphForm {
            opset: self.model.opset,
            ir_version: self.model.ir_version,
            rows: self.rows,
            prefix: "",
        })
    }

    /// Adds the encoder with its input `images` to a graph; returns its features.
    pub(crate) fn add<'g>(&'g self, graph: &mut Graph<'g>) -> Value {
        let side = self.side as usize;
        graph.input(IMAGES, ElementType::U8, &[side, side, 3]);
        graph.include(&self.model, Renaming::default());
        Value::of_included(FEATURES.to_owned())
    }
}

/// Returns the rows and the side of an image input.
fn images(port: &ForeignPort) -> Option<[Option<u64>; 2]> {
    let &[rows, height, width, channels] = port.dimensions.as_ref()?.as_slice() else { return None };
    let is_images = port.name == IMAGES && port.element == Some(ElementType::U8);
    (is_images && height == width && channels == Some(3)).then_some([rows, height])
}

/// Returns the rows and the width of a feature output.
fn features(port: &ForeignPort) -> Option<[Option<u64>; 2]> {
    let &[rows, width] = port.dimensions.as_ref()?.as_slice() else { return None };
    (port.name == FEATURES && port.element == Some(ElementType::F32)).then_some([rows, width])
}

fn refused(problem: &str) -> ForeignProblem {
    ForeignProblem::NotAnEncoder(problem.to_owned())
}
