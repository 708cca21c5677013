//! Limits of what calmix reads of a foreign model. The largest encoders have a tenth of each.

use calmix_io::protobuf::Field;

use super::problem::ForeignProblem;

pub(super) const MAX_NODES: usize = 100_000;
pub(super) const MAX_INITIALISERS: usize = 100_000;
/// Inputs and outputs of all nodes, and their attributes.
pub(super) const MAX_EDGES: usize = 1_000_000;
/// Inputs of a graph: the initialisers too, in old files.
pub(super) const MAX_INPUTS: usize = MAX_INITIALISERS + 1_000;
pub(super) const MAX_OUTPUTS: usize = 1_000;
/// Bytes of all tensors: an ONNX file ends at 2 GiB, and the nodes need some.
pub(super) const MAX_TENSOR_BYTES: u64 = 2_000_000_000;
pub(super) const MAX_RANK: usize = 16;
/// Numbers of a tensor that a node makes from constants.
pub(super) const MAX_ELEMENTS: u64 = 1 << 28;
pub(super) const MAX_LIST: usize = 1 << 20;
/// Bytes of a name.
const MAX_NAME_BYTES: usize = 1_000;

pub(super) fn name_of<'a>(field: &Field<'a>) -> Result<&'a str, ForeignProblem> {
    let name = field.text()?;
    if name.len() > MAX_NAME_BYTES {
        let start = name.chars().take(40).collect();
        return Err(ForeignProblem::LongName { start, length: name.len(), max: MAX_NAME_BYTES });
    }
    Ok(name)
}

/// Refuses counts above the limit; `what` is the thing in the singular.
pub(super) fn check_max(found: usize, max: usize, what: &'static str) -> Result<(), ForeignProblem> {
    if found > max {
        return Err(ForeignProblem::TooMany { what, max: max as u64 });
    }
    Ok(())
}
