//! Limits of what calmix reads from a foreign model. The largest encoders reach a tenth of each.

pub(super) const MAX_NODES: usize = 100_000;
pub(super) const MAX_INITIALISERS: usize = 100_000;
/// The maximum total of the nodes' inputs, outputs and attributes.
pub(super) const MAX_EDGES: usize = 1_000_000;
/// The maximum number of a graph's inputs, which include the initialisers in old files.
pub(super) const MAX_INPUTS: usize = MAX_INITIALISERS + 1_000;
pub(super) const MAX_OUTPUTS: usize = 1_000;
/// The maximum size of all tensors in bytes: an ONNX file is limited to 2 GiB, and the nodes need some of it.
pub(super) const MAX_TENSOR_BYTES: u64 = 2_000_000_000;
pub(super) const MAX_RANK: usize = 16;
/// The maximum number of elements of a tensor that a node makes from constants.
pub(super) const MAX_ELEMENTS: u64 = 1 << 28;
pub(super) const MAX_LIST: usize = 1 << 20;
pub(super) const MAX_NAME_BYTES: usize = 1_000;
