//! Limits of what calmix reads of a foreign model. The largest encoders have a tenth of each.

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
pub(super) const MAX_NAME_BYTES: usize = 1_000;
