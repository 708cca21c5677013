//! The passes of a step, and how processes sum the contributions of their micro-batches.

use crate::field::choice;

choice! {
    /// The forward passes of a step, which decide the images that share batch statistics. In brackets, the arithmetic at
    /// B = 64 and μ = 7, in images per forward pass; a backward pass costs twice as much as a forward pass.
    StepKind = Concat {
        /// A pass without gradient to choose the mixtures, then one pass over labelled, mixed, weak and strong images: "The
        /// final model input includes labeled, unlabeled, and mixup-augmented data". 17% more arithmetic than joint, and the
        /// same as joint while nothing is mixed.
        ///
        /// `[x; u_weak]` without a gradient and without updating the running statistics, then `[x; mixed; u_weak;
        /// u_strong]` with both (3,584).
        Concat = "concat",
        /// One pass over labelled, weak and strong images, then one over the mixtures alone.
        ///
        /// `[x; u_weak; u_strong]`, then the mixtures, which do not update the running statistics (3,072).
        Joint = "joint",
        /// A pass without gradient to choose the mixtures, then one pass over labelled, mixed and strong images: 0.73 of the
        /// arithmetic of joint, 0.63 of that of concat.
        ///
        /// `[x; u_weak]` without a gradient and without updating the running statistics, then `[x; mixed; u_strong]`
        /// with both (2,240): the least arithmetic, since weak views need no gradient.
        Lean = "lean",
    }
}

choice! {
    /// How the gradients of all processes are added up.
    SumKind = Tree {
        /// Along a tree over the micro-batches: the same bits on any number of processes.
        ///
        /// By exchanges of all with all. Between hosts every process sends its share to every other one.
        Tree = "tree",
        /// By all-reduce, as in PyTorch's DDP: the same on all processes, but other last bits on another number of them.
        ///
        /// Gloo's or NCCL's own algorithm, which sends the least between hosts.
        AllReduce = "all-reduce",
    }
}
