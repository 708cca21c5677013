//! Models that other programs exported, read as untrusted input and turned into encoders of images.
//!
//! | question | module |
//! |---|---|
//! | what is in the file, and may calmix use it? | this one, with `node`, `attribute`, `tensor`, `port` |
//! | which file beside the model has the data of a tensor? | `location` |
//! | how large may everything be? | `limits` |
//! | are names unique, nodes in order and tensors small? | `graph_checks` |
//! | which input is the image? | [`image_input`] |
//! | which output gives the features? | [`feature_output`] |
//! | how does it become an encoder? | [`encoder`] |
//! | what does calmix read of an encoder that it wrote? | [`encoder_file`] |
//! | what can go wrong? | [`problem`] |
//!
//! No part of a file is copied to the output unread: calmix writes only what it has read and checked.

pub(crate) mod attribute;
pub mod encoder;
pub mod encoder_file;
pub mod feature_output;
mod graph_checks;
pub mod image_input;
mod limits;
pub mod location;
mod node;
pub mod port;
pub mod problem;
pub mod tensor;

use std::borrow::Cow;

use calmix_io::protobuf::{Fields, Message};

pub use self::encoder::EncoderGraph;
use self::limits::{MAX_INITIALISERS, MAX_INPUTS, MAX_NODES, MAX_OUTPUTS};
use self::location::{ExternalFiles, ReadFile};
use self::node::ForeignNode;
use self::port::ForeignPort;
use self::problem::{ForeignProblem, check_max, name_of};
use self::tensor::{ForeignTensor, Storage};

/// The earliest version of the standard operators that calmix reads. Since then, the operators that calmix adds have the same
/// meaning.
const MIN_OPSET: i64 = 13;
/// The first version of the file format in which names and types are encoded as calmix writes them.
const MIN_IR_VERSION: i64 = 8;

/// A checked model from another program: standard operators in order, and tensors with all of their numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignModel<'a> {
    pub(crate) ir_version: i64,
    pub(crate) opset: i64,
    pub(crate) nodes: Vec<ForeignNode<'a>>,
    pub(crate) initialisers: Vec<ForeignTensor<'a>>,
    /// The inputs that are not initialisers.
    inputs: Vec<ForeignPort>,
    outputs: Vec<ForeignPort>,
    /// The files beside the model with data of its tensors.
    pub(crate) files: Vec<Vec<u8>>,
    tensor_bytes: u64,
}

impl<'a> ForeignModel<'a> {
    /// Reads a model. `external` gets the name of a file beside it, without a folder, and returns the whole file; it must open
    /// nothing outside the model's folder, and refuse files that are too large for memory. It is called once per file.
    ///
    /// # Errors
    /// If the file is damaged, or the model has parts that an image encoder does not need.
    pub fn read(
        bytes: &'a [u8],
        external: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Self, ForeignProblem> {
        Self::read_with(bytes, Some(external))
    }

    /// Reads a model; without `external`, it must contain all data.
    fn read_with(bytes: &'a [u8], external: Option<ReadFile<'_>>) -> Result<Self, ForeignProblem> {
        let mut storage = Storage { files: ExternalFiles::new(external), bytes: 0 };
        let mut parts = ModelParts::default();
        for field in Fields::new(bytes) {
            let field = field?;
            match field.number {
                1 => parts.ir_version = field.integer()?,
                // The standard merges a message that occurs twice; no exporter writes two.
                7 if parts.graph.is_some() => {
                    return Err(ForeignProblem::TooMany { what: "graph", max: 1 });
                }
                7 => parts.graph = Some(field.message()?),
                8 => parts.add_opset(field.message()?)?,
                20 => return Err(ForeignProblem::Training),
                25 => return Err(ForeignProblem::Function { name: function_name(field.message()?)? }),
                _ => {}
            }
        }
        let graph = parts.graph.ok_or(ForeignProblem::NoGraph)?;
        let opset = parts.opset.filter(|&opset| opset >= MIN_OPSET);
        let opset = opset.ok_or(ForeignProblem::Opset { found: parts.opset, min: MIN_OPSET })?;
        let mut model = Self {
            ir_version: parts.ir_version.max(MIN_IR_VERSION),
            opset,
            nodes: Vec::new(),
            initialisers: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            files: Vec::new(),
            tensor_bytes: 0,
        };
        model.read_graph(graph, &mut storage)?;
        model.tensor_bytes = storage.bytes;
        model.files = storage.files.into_files();
        model.check_order()?;
        model.check_element_counts()?;
        Ok(model)
    }

    /// Reads a `GraphProto`.
    fn read_graph(&mut self, graph: Fields<'a>, storage: &mut Storage<'_>) -> Result<(), ForeignProblem> {
        let mut edges = 0;
        for field in graph {
            let field = field?;
            match field.number {
                1 => {
                    check_max(self.nodes.len() + 1, MAX_NODES, "node")?;
                    let number = self.nodes.len();
                    self.nodes.push(ForeignNode::read(field.message()?, number, &mut edges, storage)?);
                }
                5 => {
                    check_max(self.initialisers.len() + 1, MAX_INITIALISERS, "initialiser")?;
                    self.initialisers.push(ForeignTensor::read(field.message()?, None, storage)?);
                }
                11 => {
                    check_max(self.inputs.len() + 1, MAX_INPUTS, "input")?;
                    self.inputs.push(ForeignPort::read(field.message()?)?);
                }
                12 => {
                    check_max(self.outputs.len() + 1, MAX_OUTPUTS, "output")?;
                    self.outputs.push(ForeignPort::read(field.message()?)?);
                }
                15 => return Err(ForeignProblem::Sparse { place: "an initialiser".to_owned() }),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the inputs that a caller must provide, without initialisers.
    pub fn inputs(&self) -> &[ForeignPort] {
        &self.inputs
    }

    /// Returns the outputs with their declared names, types and shapes.
    pub fn outputs(&self) -> &[ForeignPort] {
        &self.outputs
    }

    /// Returns its approximate size in a file, in bytes.
    pub(crate) fn file_bytes(&self) -> usize {
        /// The size of a node or of a tensor's header, with names and attributes.
        const EACH: usize = 400;
        let parts = self.nodes.len() + self.initialisers.len();
        // Does not overflow: at most `MAX_TENSOR_BYTES` were read.
        self.tensor_bytes as usize + parts * EACH
    }

    /// Returns the model with the data of the files beside it. `bytes` are those it was read from, returned unchanged if it needs
    /// no other file.
    pub fn self_contained(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.files.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut model = Message::default();
        model.integer(1, self.ir_version);
        model.nested(7, |graph| self.write_graph(graph));
        model.nested(8, |operators| {
            operators.text(1, "");
            operators.integer(2, self.opset);
        });
        Cow::Owned(model.into_bytes())
    }

    fn write_graph(&self, graph: &mut Message) {
        for node in &self.nodes {
            graph.nested(1, |message| node.write(message, &str::to_owned, &self.files));
        }
        graph.text(2, "model");
        for tensor in &self.initialisers {
            graph.nested(5, |message| tensor.write(message, tensor.name(), &self.files));
        }
        for (field, ports) in [(11, &self.inputs), (12, &self.outputs)] {
            for port in ports {
                graph.nested(field, |message| write_port(message, port));
            }
        }
    }
}

/// The fields of a `ModelProto`.
#[derive(Default)]
struct ModelParts<'a> {
    ir_version: i64,
    opset: Option<i64>,
    graph: Option<Fields<'a>>,
}

impl<'a> ModelParts<'a> {
    /// Reads an `OperatorSetIdProto`. Exporters also import domains that no node uses, which are ignored.
    fn add_opset(&mut self, fields: Fields<'a>) -> Result<(), ForeignProblem> {
        let mut domain = "";
        let mut version = 0;
        for field in fields {
            let field = field?;
            match field.number {
                1 => domain = name_of(&field)?,
                2 => version = field.integer()?,
                _ => {}
            }
        }
        if matches!(domain, "" | "ai.onnx") {
            self.opset = Some(version);
        }
        Ok(())
    }
}

/// Reads the name of a `FunctionProto`.
fn function_name(fields: Fields<'_>) -> Result<String, ForeignProblem> {
    for field in fields {
        let field = field?;
        if field.number == 1 {
            return Ok(name_of(&field)?.to_owned());
        }
    }
    Ok(String::new())
}

/// Writes a `ValueInfoProto`.
fn write_port(message: &mut Message, port: &ForeignPort) {
    message.text(1, &port.name);
    message.nested(2, |kind| {
        kind.nested(1, |tensor| {
            if let Some(element) = port.element {
                tensor.integer(1, element as i64);
            }
            if let Some(dimensions) = &port.dimensions {
                tensor.nested(2, |shape| {
                    for size in dimensions {
                        shape.nested(1, |dimension| {
                            if let Some(size) = size {
                                dimension.integer(1, size.cast_signed());
                            }
                        });
                    }
                });
            }
        });
    });
}
