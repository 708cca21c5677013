//! Compares settings: which is better, and is the difference significant?
//!
//! Runs that differ only in their seeds are one setting. Settings on the same data are compared on runs with the same seeds:
//! Student's interval of the mean difference, and p-values with Holm's correction for all tests of the comparison. Fewer
//! than [`MIN_PAIRS`] pairs are not tested: with two, the interval is 12.7 standard errors wide on each side.
//!
//! | question | file |
//! |---|---|
//! | which data of a run are compared? | `measure.rs` |
//! | which runs are one setting, and what is it called? | `settings.rs`, `method_words.rs` |
//! | how do two settings differ? | `difference.rs`, for all of them `comparison.rs` |
//! | what are the paper's metrics of a setting? | `paper.rs`, from `paper.csv` |
//! | how is it written? | `layout.rs`, then `markdown.rs`, `latex.rs`, `long_csv.rs` |

mod comparison;
mod difference;
mod latex;
mod layout;
mod long_csv;
mod markdown;
mod measure;
mod method_words;
mod paper;
mod settings;

pub use comparison::{Comparison, SettingCell};
pub use difference::{LEVEL, MIN_PAIRS, PairOutcome, SettingDifference};
pub use measure::{ComparedRun, Measure};
pub use paper::{PAPER, PublishedMetrics};
pub use settings::DataColumn;
