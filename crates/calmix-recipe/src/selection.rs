//! Which of many evaluations is the result of a run.

use crate::field::choice;

choice! {
    /// A rule that turns the history of a run into its result.
    Selection = Last {
        /// The averaged model of the last step.
        Last = "last",
        /// The median figure of the last evaluations (20 unless `evaluate.window` says otherwise), as in Google's code.
        ///
        /// Each figure has a median of its own; FixMatch's published results take 20 evaluations of the EMA model.
        Median = "median",
        /// The best one on the labels held out for validation.
        ///
        /// The EMA model with the least error, the first of equals.
        BestValidation = "best-validation",
        /// The best one on the test subset, as in USB, TorchSSL and the released code: every table then says so.
        ///
        /// The EMA model with the least error. The figure is optimistic: the same labels choose the model and measure it. Published tables
        /// do so; here it has to be asked for, and is marked.
        BestTest = "best-test",
    }
}

impl Selection {
    /// Its name in recipes and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Last => "last",
            Self::Median => "median",
            Self::BestValidation => "best-validation",
            Self::BestTest => "best-test",
        }
    }
}
