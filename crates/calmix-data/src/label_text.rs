//! What a label says, as every format writes it.

use calmix_io::class_names;

use crate::error::DataProblem;

/// Words that other tools write for a missing value, and that are not the name of a class.
const MISSING: [&str; 6] = ["nan", "-nan", "<na>", "nat", "#n/a", "<null>"];

/// Words that other tools write for a missing value, and that may also be the name of a class.
const MAYBE_MISSING: [&str; 6] = ["na", "n/a", "none", "null", "nil", "missing"];

/// The class that the label of a vector or a numbered class names; `None` if the sample is unlabelled: its label is empty, or
/// −1.
///
/// # Errors
/// As [`class_of`].
pub(crate) fn label_of(text: &str) -> Result<Option<String>, DataProblem> {
    if text == "-1" { Ok(None) } else { class_of(text) }
}

/// The class that a label names; `None` if it is empty.
///
/// `NaN` and similar words are refused. Read as classes, they would make one class of all unlabelled samples; read as
/// unlabelled, they would silently drop a class that is really called so. `None` and `NA` are common class names and accepted.
///
/// # Errors
/// If the label stands for a missing value, or is too long for a class.
pub(crate) fn class_of(text: &str) -> Result<Option<String>, DataProblem> {
    if text.is_empty() {
        return Ok(None);
    }
    if is_missing(text) {
        let problem = format!(
            "the label is {text:?}, which stands for a missing value; leave it empty if the sample is unlabelled, or \
             rename the class"
        );
        return Err(DataProblem::Content(problem));
    }
    class_names::check(text).map_err(DataProblem::Limit)?;
    Ok(Some(text.to_owned()))
}

/// Whether a text only ever stands for a missing value.
pub(crate) fn is_missing(text: &str) -> bool {
    MISSING.iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// Whether a class has a name that other tools write for a missing value.
pub(crate) fn may_be_missing(class: &str) -> bool {
    MAYBE_MISSING.iter().any(|word| word.eq_ignore_ascii_case(class))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_values_are_refused_and_words_are_classes() {
        for text in ["NaN", "nan", "NAN", "<NA>", "NaT", "#N/A"] {
            let problem = label_of(text).unwrap_err().to_string();
            assert!(problem.contains("leave it empty if the sample is unlabelled"), "{problem}");
        }
        for text in ["None", "NA", "null", "nano", "Nancy", "0", "-2", "nan bread"] {
            assert_eq!(label_of(text).unwrap().as_deref(), Some(text));
        }
        for text in ["", "-1"] {
            assert_eq!(label_of(text).unwrap(), None, "{text:?}");
        }
        assert!(label_of(&"x".repeat(class_names::MAX_BYTES + 1)).is_err());
        assert!(may_be_missing("None") && !may_be_missing("cat"));
    }
}
