//! The reasons why a foreign model cannot be an encoder, with hints.

use calmix_io::protobuf::{Field, ProtobufError};
use calmix_io::shown::shown;
use calmix_io::text::counted;

use super::limits::{MAX_NAME_BYTES, MAX_RANK};

/// The reason why a foreign model cannot be an encoder. Names from the file are escaped in messages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForeignProblem {
    #[error("not an ONNX file, or not all of it: {0}. Download or export the model again")]
    Protobuf(#[from] ProtobufError),
    /// The message contains no graph; it may have another format.
    #[error("not an ONNX model: it has no graph. Export the model with torch.onnx.export")]
    NoGraph,
    #[error(
        "it has more than {}, the most that calmix reads. Export only the image encoder, again",
        counted(*max, what)
    )]
    TooMany {
        /// The singular of what is counted, such as `node`.
        what: &'static str,
        max: u64,
    },
    /// The name of a node or a value is too long.
    #[error(
        "a name begins with `{}` and is {} long; calmix reads names of up to {}. Export the model again",
        shown(start),
        counted(*length as u64, "byte"),
        counted(*max as u64, "byte")
    )]
    LongName { start: String, length: usize, max: usize },
    /// The version of the standard operators is missing or too old.
    #[error("its operators are of {}; calmix reads opset {min} and later. Export the model again with torch.onnx.export(..., opset_version=17)", found.map_or_else(|| "no known opset".to_owned(), |found| format!("opset {found}")))]
    Opset { found: Option<i64>, min: i64 },
    #[error(
        "it defines the function `{}`; calmix reads only standard operators. Inline the functions with onnx.inliner.inline_local_functions, or export again with torch.onnx.export(..., opset_version=17)",
        shown(name)
    )]
    Function { name: String },
    /// An operator that is not part of the standard.
    #[error(
        "{node} is an operator of the domain `{}`; calmix reads only standard operators. Export the model without a runtime's optimisations or custom operators, with torch.onnx.export(..., opset_version=17)",
        shown(domain)
    )]
    Domain { node: String, domain: String },
    #[error("it contains information for training. Export the model for inference, after model.eval()")]
    Training,
    /// An attribute is a graph, as in If, Loop and Scan.
    #[error(
        "{node} contains a graph of its own; calmix reads models without branches and loops. Export the model again with a fixed image size, with torch.onnx.export(..., opset_version=17)"
    )]
    Subgraph { node: String },
    #[error("{place} is sparse; calmix reads dense tensors. Export the model again with dense weights")]
    Sparse { place: String },
    /// An attribute of an unsupported type or size.
    #[error(
        "the attribute `{}` of {node} {problem}. Export the model again with torch.onnx.export(..., opset_version=17)",
        shown(attribute)
    )]
    Attribute { node: String, attribute: String, problem: &'static str },
    /// A tensor's data do not match its declaration.
    #[error("{tensor} {problem}")]
    Tensor { tensor: String, problem: TensorProblem },
    /// The weights are too large for one file.
    #[error(
        "its weights have more than {}, the most that one ONNX file holds. Export a smaller model, or export it in float16",
        counted(*max, "byte")
    )]
    TooLarge { max: u64 },
    /// Data in a second file cannot be read.
    #[error("the data of {tensor} are in the file `{}`, {problem}", shown(location))]
    External { tensor: String, location: String, problem: LocationProblem },
    #[error("two values are called `{}`; the standard allows one. Export the model again", shown(name))]
    DuplicateName { name: String },
    /// A node reads a value that no earlier node computes.
    #[error("{node} reads `{}`, which nothing before it computes. Export the model again", shown(input))]
    Unordered { node: String, input: String },
    /// A node would make a tensor larger than an image encoder needs.
    #[error(
        "{node} would make a tensor of more than {}. Export the model again with the image size that it was trained with",
        counted(*max, "number")
    )]
    TooManyElements { node: String, max: u64 },
    /// No input is an image, or other inputs are required too.
    #[error(
        "its inputs are {inputs}; an encoder needs exactly one, of float images in NCHW or NHWC order with three channels. Export only the image encoder, for example model.vision_model of CLIP or SigLIP"
    )]
    Inputs { inputs: String },
    #[error("the input {input} {problem}")]
    Image { input: String, problem: &'static str },
    #[error("the input `{}` takes images of {} × {} pixels, not of {side} × {side}. Set augment.size = {}", shown(input), declared.0, declared.1, declared.0)]
    Side {
        input: String,
        /// The model's numbers of rows and columns of pixels.
        declared: (u32, u32),
        side: u32,
    },
    /// A mean, a standard deviation or a side is impossible for images.
    #[error("{0}")]
    Pixels(String),
    #[error(
        "it has no output `{}`; its outputs are {outputs}. Set network.output to one of them",
        shown(requested)
    )]
    NoOutput { requested: String, outputs: String },
    /// There are several outputs, none of which has a usual name.
    #[error(
        "its outputs are {outputs}; calmix cannot tell which are the features. Set network.output to one of them"
    )]
    AmbiguousOutput { outputs: String },
    #[error("the output {output} {problem}")]
    Output { output: String, problem: String },
    /// The file was not written by [`ForeignModel::encoder`](super::ForeignModel::encoder).
    #[error("not an encoder that calmix has made: {0}. Import the model again")]
    NotAnEncoder(String),
}

/// The reason why a tensor's data do not match its declaration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorProblem {
    /// The numbers are strings, complex, or of fewer than eight bits.
    #[error(
        "has numbers of type {0}, which calmix does not read. Export the model again in float32 or float16"
    )]
    Type(i64),
    /// A size is negative, or there are more numbers than memory has addresses.
    #[error("has an invalid shape. Export the model again")]
    Shape,
    #[error("has more than {MAX_RANK} dimensions. Export the model again")]
    Rank,
    #[error("has no data. Export the model again with its weights, with export_params=True")]
    NoData,
    #[error("has its data twice. Export the model again")]
    TwoSources,
    #[error("has {found} bytes, but its shape requires {wanted}. Download or export the model again")]
    Bytes { found: usize, wanted: usize },
    /// A number is out of the range of its type.
    #[error("has a number outside the range of its type. Export the model again")]
    Number,
}

/// The reason why data in a second file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LocationProblem {
    /// A file name could lead out of the folder.
    #[error(
        "whose name {0}; calmix reads files beside the model only. Save the model again with onnx.save(..., save_as_external_data=True)"
    )]
    Name(&'static str),
    /// The name is missing, or a position is not a number.
    #[error("whose {0} is missing or not a number. Save the model again with onnx.save")]
    Entry(&'static str),
    #[error("which cannot be read: {0}. Put it beside the model, under this name")]
    Unreadable(String),
    #[error("which has {found} bytes, but the data end at byte {end}. Download or copy it again")]
    Short { found: usize, end: u64 },
    /// The declared length is not that of the shape.
    #[error("which declares {declared} bytes for a shape of {wanted}. Export the model again")]
    Length { declared: u64, wanted: usize },
    /// The file must be self-contained but refers to another one.
    #[error("but this file must hold all of its data. Import the model again")]
    NotAllowed,
}

/// Reads a name of at most [`MAX_NAME_BYTES`].
pub(super) fn name_of<'a>(field: &Field<'a>) -> Result<&'a str, ForeignProblem> {
    let name = field.text()?;
    if name.len() > MAX_NAME_BYTES {
        let start = name.chars().take(40).collect();
        return Err(ForeignProblem::LongName { start, length: name.len(), max: MAX_NAME_BYTES });
    }
    Ok(name)
}

/// Refuses counts above the limit; `what` is the singular of what is counted.
pub(super) fn check_max(found: usize, max: usize, what: &'static str) -> Result<(), ForeignProblem> {
    if found > max {
        return Err(ForeignProblem::TooMany { what, max: max as u64 });
    }
    Ok(())
}
