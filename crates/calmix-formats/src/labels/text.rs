//! The meaning of a label or group as text, the same in every format.

use calmix_io::class_names;

use crate::error::FormatProblem;

/// Words that other tools write for a missing value and that are not class names.
const MISSING: [&str; 6] = ["nan", "-nan", "<na>", "nat", "#n/a", "<null>"];

/// Words that other tools write for a missing value and that may also be class names.
const MAYBE_MISSING: [&str; 6] = ["na", "n/a", "none", "null", "nil", "missing"];

/// The maximum number of classes; a label beyond it counts as a mistake.
pub const MAX_CLASSES: u64 = 1 << 20;

/// Up to this number of classes, labels may be sparse: a subset of ImageNet with its original numbers.
const FEW_CLASSES: u64 = 1_000;

/// The hint for a label that is too high.
pub const HINT: &str = "correct the label, or number the classes from 0 without gaps";

/// Parses the label of a vector or of a numbered class; `None` if the sample is unlabelled: an empty text, or −1.
pub fn parse_label(text: &str) -> Result<Option<String>, FormatProblem> {
    if text == "-1" { Ok(None) } else { parse_class(text) }
}

/// Parses the class that a label names; `None` if it is empty.
///
/// `NaN` and similar words are refused. Read as classes, they would put all unlabelled samples into one class; read as
/// unlabelled, they would silently drop a class with such a name. `None` and `NA` are common class names and accepted.
///
/// # Errors
/// If the label stands for a missing value, or is too long for a class.
pub fn parse_class(text: &str) -> Result<Option<String>, FormatProblem> {
    if text.is_empty() {
        return Ok(None);
    }
    if is_missing(text) {
        let problem = format!(
            "the label is {text:?}, which stands for a missing value; leave it empty if the sample is unlabelled, or \
             rename the class"
        );
        return Err(FormatProblem::Content(problem));
    }
    class_names::check(text).map_err(FormatProblem::Limit)?;
    Ok(Some(text.to_owned()))
}

/// Returns whether a text can only stand for a missing value.
pub fn is_missing(text: &str) -> bool {
    MISSING.iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// Returns whether a class has a name that other tools write for a missing value.
pub fn may_be_missing(class: &str) -> bool {
    MAYBE_MISSING.iter().any(|word| word.eq_ignore_ascii_case(class))
}

/// Parses a field of the column `group`; `None` if it is empty.
///
/// # Errors
/// If the text stands for a missing value, or is longer than a class name may be. Read as groups, missing values would put
/// all samples without a group into one.
pub fn parse_group(text: &str) -> Result<Option<&str>, FormatProblem> {
    if text.is_empty() {
        return Ok(None);
    }
    if text == "-1" || is_missing(text) {
        return Err(FormatProblem::Content(format!(
            "the group is {text:?}, which may stand for a missing value; leave it empty if the sample is a group of its own, \
             or rename the group"
        )));
    }
    if text.len() > class_names::MAX_NAME_BYTES {
        return Err(FormatProblem::Limit(format!(
            "the name of the group has {} bytes, expected at most {}",
            text.len(),
            class_names::MAX_NAME_BYTES
        )));
    }
    Ok(Some(text))
}

/// Returns as many classes as the highest label implies, named by number; `used` is the number of distinct labels.
///
/// # Errors
/// If there are far fewer labels than classes, because the highest label is then probably a mistake.
pub fn numbered_classes(highest: u32, used: usize) -> Result<Vec<String>, FormatProblem> {
    let classes = u64::from(highest) + 1;
    // Memory grows with classes times samples, so a single wrong label could exhaust it.
    if classes > FEW_CLASSES && (used as u64) < classes / 10 {
        let problem = format!("the label is {highest}, but only {used} different labels occur");
        return Err(FormatProblem::Limit(problem));
    }
    Ok((0..classes).map(|class| class.to_string()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_values_are_refused_and_words_are_classes() {
        for text in ["NaN", "nan", "NAN", "<NA>", "NaT", "#N/A"] {
            let problem = parse_label(text).unwrap_err().to_string();
            assert!(problem.contains("leave it empty if the sample is unlabelled"), "{problem}");
        }
        for text in ["None", "NA", "null", "nano", "Nancy", "0", "-2", "nan bread"] {
            assert_eq!(parse_label(text).unwrap().as_deref(), Some(text));
        }
        for text in ["", "-1"] {
            assert_eq!(parse_label(text).unwrap(), None, "{text:?}");
        }
        assert!(parse_label(&"x".repeat(class_names::MAX_NAME_BYTES + 1)).is_err());
        assert!(may_be_missing("None") && !may_be_missing("cat"));
    }

    #[test]
    fn missing_group_is_refused() {
        for text in ["nan", "NaN", "<NA>", "-1", "#N/A"] {
            let problem = parse_group(text).unwrap_err().to_string();
            assert!(problem.contains("leave it empty if the sample is a group of its own"), "{problem}");
        }
        assert_eq!(parse_group("").unwrap(), None);
        for text in ["0", "patient 7", "None", "-2"] {
            assert_eq!(parse_group(text).unwrap(), Some(text));
        }
        parse_group(&"x".repeat(class_names::MAX_NAME_BYTES + 1)).unwrap_err();
    }
}
