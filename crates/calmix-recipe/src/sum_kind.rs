//! How processes add up what their shards contribute to a step.

use crate::field::choice;

choice! {
    /// How the gradients of all processes are added up.
    SumKind = Tree {
        /// Along a tree over the shards: the same bits on any number of processes.
        ///
        /// By exchanges of all with all. Between hosts every process sends its share to every other one.
        Tree = "tree",
        /// By all-reduce, as in PyTorch's DDP: the same on all processes, but other last bits on another number of them.
        ///
        /// Gloo's or NCCL's own algorithm, which sends the least between hosts.
        AllReduce = "all-reduce",
    }
}
