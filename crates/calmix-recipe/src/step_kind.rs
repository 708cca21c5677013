//! The passes of a step.

use crate::field::choice;

choice! {
    /// Which passes a step makes, and so who normalises with whom. In brackets, the arithmetic at B = 64 and μ = 7,
    /// counted in images that go forward; backward costs twice as much as forward.
    StepKind = Concat {
        /// A plan from a pass without gradient, then one pass over labelled, mixed, weak and strong rows: "The final
        /// model input includes labeled, unlabeled, and mixup-augmented data". 17% more arithmetic than joint, whose
        /// step it is while nothing is mixed.
        ///
        /// `[x; u_weak]` without a gradient and without a trace in the running statistics, then `[x; mixed; u_weak;
        /// u_strong]` with one (3,584).
        Concat = "concat",
        /// One pass over labelled, weak and strong rows, then one over the mixtures alone.
        ///
        /// `[x; u_weak; u_strong]`, then the mixtures, which leave no trace in the running statistics (3,072).
        Joint = "joint",
        /// A plan from a pass without gradient, then one pass over labelled, mixed and strong rows: 0.73 of the
        /// arithmetic of joint, 0.63 of that of concat.
        ///
        /// `[x; u_weak]` without a gradient and without a trace in the running statistics, then `[x; mixed; u_strong]`
        /// with one (2,240): the least arithmetic, since weak views need no gradient.
        Lean = "lean",
    }
}
