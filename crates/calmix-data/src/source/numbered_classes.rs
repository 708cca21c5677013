//! Classes that are known by their numbers alone.

use crate::error::DataProblem;

/// The largest number of classes; a label beyond it is taken for a mistake.
pub(super) const MOST_CLASSES: u64 = 1 << 20;

/// With at most this many classes, labels may be sparse: a subset of ImageNet under its original numbers.
const FEW_CLASSES: u64 = 1_000;

/// What to do about a label that is too high.
pub(super) const HINT: &str = "correct the label, or number the classes from 0 without gaps";

/// As many classes as the highest label says, named by their numbers. `used` different labels occur.
pub(super) fn numbered_classes(highest: u32, used: usize) -> Result<Vec<String>, DataProblem> {
    let classes = u64::from(highest) + 1;
    // Memory grows with classes times samples, so one wrong label could exhaust it.
    if classes > FEW_CLASSES && (used as u64) < classes / 10 {
        let problem = format!("the label is {highest}, but only {used} different labels occur");
        return Err(DataProblem::Limit(problem));
    }
    Ok((0..classes).map(|class| class.to_string()).collect())
}
