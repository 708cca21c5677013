//! Why a foreign model cannot be an encoder, and what to do about it.

use calmix_io::counted::counted;
use calmix_io::protobuf::ProtobufError;
use calmix_io::shown::shown;

use super::limits::MAX_RANK;

/// Why a foreign model cannot be an encoder. Names from the file are escaped in messages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForeignProblem {
    /// The bytes are not a message.
    #[error("not an ONNX file, or not all of it: {0}. Download or export the model again")]
    Protobuf(#[from] ProtobufError),
    /// A message without a graph, as of another format.
    #[error("not an ONNX model: it has no graph. Export the model with torch.onnx.export")]
    NoGraph,
    /// More of something than calmix reads.
    #[error(
        "it has more than {}, the most that calmix reads. Export only the image encoder, again",
        counted(*most, what)
    )]
    TooMany {
        /// What there is too much of, in the singular: `node`.
        what: &'static str,
        /// The limit.
        most: u64,
    },
    /// A name of a node or a value that is too long.
    #[error(
        "a name begins with `{}` and is {} long; calmix reads names of up to {}. Export the model again",
        shown(start),
        counted(*length as u64, "byte"),
        counted(*most as u64, "byte")
    )]
    LongName {
        /// Its first characters.
        start: String,
        /// Its length in bytes.
        length: usize,
        /// The limit.
        most: usize,
    },
    /// The version of the standard operators is missing or too old.
    #[error("its operators are of {}; calmix reads opset {least} and later. Export the model again with torch.onnx.export(..., opset_version=17)", found.map_or_else(|| "no known opset".to_owned(), |found| format!("opset {found}")))]
    Opset {
        /// The version in the file.
        found: Option<i64>,
        /// The earliest version that calmix reads.
        least: i64,
    },
    /// A function that the model defines itself.
    #[error(
        "it defines the function `{}`; calmix reads only standard operators. Inline the functions with onnx.inliner.inline_local_functions, or export again with torch.onnx.export(..., opset_version=17)",
        shown(name)
    )]
    Function {
        /// The name of the function.
        name: String,
    },
    /// An operator that is not part of the standard.
    #[error(
        "{node} is an operator of the domain `{}`; calmix reads only standard operators. Export the model without a runtime's optimisations or custom operators, with torch.onnx.export(..., opset_version=17)",
        shown(domain)
    )]
    Domain {
        /// The node.
        node: String,
        /// The domain of its operator.
        domain: String,
    },
    /// Information for training.
    #[error("it contains information for training. Export the model for inference, after model.eval()")]
    Training,
    /// An attribute that is a graph, as of If, Loop and Scan.
    #[error(
        "{node} contains a graph of its own; calmix reads models without branches and loops. Export the model again with a fixed image size, with torch.onnx.export(..., opset_version=17)"
    )]
    Subgraph {
        /// The node.
        node: String,
    },
    /// A sparse tensor.
    #[error("{place} is sparse; calmix reads dense tensors. Export the model again with dense weights")]
    Sparse {
        /// The tensor or the node.
        place: String,
    },
    /// An attribute of an unsupported type or size.
    #[error(
        "the attribute `{}` of {node} {problem}. Export the model again with torch.onnx.export(..., opset_version=17)",
        shown(attribute)
    )]
    Attribute {
        /// The node.
        node: String,
        /// The name of the attribute.
        attribute: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A tensor that does not have the numbers that it declares.
    #[error("{tensor} {problem}")]
    Tensor {
        /// The tensor.
        tensor: String,
        /// What is wrong with it.
        problem: TensorProblem,
    },
    /// The weights are too large for one file.
    #[error(
        "its weights have more than {}, the most that one ONNX file holds. Export a smaller model, or export it in float16",
        counted(*most, "byte")
    )]
    TooLarge {
        /// The limit.
        most: u64,
    },
    /// Data in a second file that cannot be read.
    #[error("the data of {tensor} are in the file `{}`, {problem}", shown(location))]
    External {
        /// The tensor.
        tensor: String,
        /// The name of the file.
        location: String,
        /// What is wrong with it.
        problem: LocationProblem,
    },
    /// Two values with one name.
    #[error("two values are called `{}`; the standard allows one. Export the model again", shown(name))]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A node reads a value that no earlier node computes.
    #[error("{node} reads `{}`, which nothing before it computes. Export the model again", shown(input))]
    Unordered {
        /// The node.
        node: String,
        /// The value.
        input: String,
    },
    /// A node that would make a tensor larger than any image encoder needs.
    #[error(
        "{node} would make a tensor of more than {}. Export the model again with the image size that it was trained with",
        counted(*most, "number")
    )]
    TooManyElements {
        /// The node.
        node: String,
        /// The limit.
        most: u64,
    },
    /// No input is an image, or others are needed beside it.
    #[error(
        "its inputs are {inputs}; an encoder needs exactly one, of float images in NCHW or NHWC order with three channels. Export only the image encoder, for example model.vision_model of CLIP or SigLIP"
    )]
    Inputs {
        /// All inputs with types and shapes.
        inputs: String,
    },
    /// An image input that calmix cannot feed.
    #[error("the input {input} {problem}")]
    Image {
        /// The input with type and shape.
        input: String,
        /// What is wrong with it, and what to do.
        problem: &'static str,
    },
    /// Images of another size.
    #[error("the input `{}` takes images of {} × {} pixels, not of {side} × {side}. Set augment.size = {}", shown(input), declared.0, declared.1, declared.0)]
    Side {
        /// The name of the input.
        input: String,
        /// Rows and columns of pixels of the model.
        declared: (u32, u32),
        /// The requested side.
        side: u32,
    },
    /// A mean, a deviation or a side that no image has.
    #[error("{0}")]
    Pixels(String),
    /// A requested output that does not exist.
    #[error(
        "it has no output `{}`; its outputs are {outputs}. Set network.output to one of them",
        shown(requested)
    )]
    NoOutput {
        /// The requested name.
        requested: String,
        /// All outputs with types and shapes.
        outputs: String,
    },
    /// Several outputs, none of which has a usual name.
    #[error(
        "its outputs are {outputs}; calmix cannot tell which are the features. Set network.output to one of them"
    )]
    AmbiguousOutput {
        /// All outputs with types and shapes.
        outputs: String,
    },
    /// An output that does not hold features.
    #[error("the output {output} {problem}")]
    Output {
        /// The output with type and shape.
        output: String,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// A file that [`ForeignModel::encoder`](super::ForeignModel::encoder) did not write.
    #[error("not an encoder that calmix has made: {0}. Import the model again")]
    NotAnEncoder(String),
}

/// Why a tensor does not have the numbers that it declares.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorProblem {
    /// Strings, complex numbers, or numbers of fewer than eight bits.
    #[error(
        "has numbers of type {0}, which calmix does not read. Export the model again in float32 or float16"
    )]
    Type(i64),
    /// A size below zero, or more numbers than memory has addresses.
    #[error("has an invalid shape. Export the model again")]
    Shape,
    /// More dimensions than any operator takes.
    #[error("has more than {MAX_RANK} dimensions. Export the model again")]
    Rank,
    /// No data at all.
    #[error("has no data. Export the model again with its weights, with export_params=True")]
    NoData,
    /// Data in two places.
    #[error("has its data twice. Export the model again")]
    TwoSources,
    /// Data of another length.
    #[error("has {found} bytes, but its shape requires {wanted}. Download or export the model again")]
    Bytes {
        /// The bytes of the data.
        found: usize,
        /// The bytes of the shape.
        wanted: usize,
    },
    /// A number that its type does not have.
    #[error("has a number outside the range of its type. Export the model again")]
    Number,
}

/// Why the data in a second file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LocationProblem {
    /// A name that could lead out of the folder.
    #[error(
        "whose name {0}; calmix reads files beside the model only. Save the model again with onnx.save(..., save_as_external_data=True)"
    )]
    Name(&'static str),
    /// No name, or a position that is not a number.
    #[error("whose {0} is missing or not a number. Save the model again with onnx.save")]
    Entry(&'static str),
    /// The caller could not read it.
    #[error("which cannot be read: {0}. Put it beside the model, under this name")]
    Unreadable(String),
    /// The position is outside the file.
    #[error("which has {found} bytes, but the data end at byte {end}. Download or copy it again")]
    Short {
        /// The length of the file.
        found: usize,
        /// Where the data would end.
        end: u64,
    },
    /// The declared length is not that of the shape.
    #[error("which declares {declared} bytes for a shape of {wanted}. Export the model again")]
    Length {
        /// The bytes in the entry.
        declared: u64,
        /// The bytes of the shape.
        wanted: usize,
    },
    /// A file that came back, or must come alone, and yet refers to another.
    #[error("but this file must hold all of its data. Import the model again")]
    NotAllowed,
}
