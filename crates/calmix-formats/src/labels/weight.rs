//! The weight of a label in training: the column `weight` of a list.

use calmix_core::samples::label_weight::why_not;

use crate::error::FormatProblem;

/// Parses a field of the column; an empty one is 1.
///
/// # Errors
/// If it is not a positive number.
pub fn parse_weight(text: &str) -> Result<f64, FormatProblem> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(1.0);
    }
    let weight = text.parse::<f64>();
    let weight =
        weight.map_err(|_| FormatProblem::Content(format!("the weight {text:?} is not a number")))?;
    match why_not(weight) {
        Some(problem) => Err(FormatProblem::Content(problem)),
        None => Ok(weight),
    }
}

/// The hint for a wrong weight.
pub const WEIGHT_HINT: &str = "rename the column if it does not hold the weights of labels in training";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_positive_numbers() {
        assert_eq!(
            ["", " ", "2", "0.25", "1e3"].map(|text| parse_weight(text).unwrap()),
            [1.0, 1.0, 2.0, 0.25, 1e3]
        );
        for wrong in ["0", "-1", "nan", "inf", "heavy", "1,5"] {
            assert!(parse_weight(wrong).unwrap_err().to_string().contains("the weight"), "{wrong}");
        }
    }
}
