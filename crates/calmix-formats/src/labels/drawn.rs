//! How a label was drawn: whether it says anything about samples that were not chosen.
//!
//! Calibrators, prediction sets and thresholds hold for new samples that are like the labels they were fitted on. Labels that
//! were chosen, such as typical samples or suspected mistakes, are not like the others, so they are trained on only.

use crate::error::FormatProblem;

/// How a label was drawn from the samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Drawn {
    /// Not recorded. It counts as drawn at random.
    #[default]
    Given = 0,
    /// At random from all samples.
    Random = 1,
    /// At random from each class, the same number of each.
    ByClass = 2,
    /// By a rule or by hand.
    Chosen = 3,
    /// At random, but whoever was asked gave no label.
    Skipped = 4,
    /// For the audit of a certificate, at random among the rows that a model was sure of.
    Audit = 5,
    /// Not by a person: predicted, and certified by an audit.
    Certified = 6,
}

/// All draws with their words in a list of labels.
const WORDS: [(Drawn, &str); 7] = [
    (Drawn::Given, "given"),
    (Drawn::Random, "random"),
    (Drawn::ByClass, "by-class"),
    (Drawn::Chosen, "chosen"),
    (Drawn::Skipped, "skipped"),
    (Drawn::Audit, "audit"),
    (Drawn::Certified, "certified"),
];

impl Drawn {
    /// Parses a field of the column `drawn`; an empty one is [`Given`](Self::Given).
    ///
    /// # Errors
    /// If there is no such word.
    pub fn parse(text: &str) -> Result<Self, FormatProblem> {
        if text.is_empty() {
            return Ok(Self::Given);
        }
        let found = WORDS.iter().find(|(_, word)| *word == text);
        found.map(|&(drawn, _)| drawn).ok_or_else(|| {
            let words = WORDS.map(|(_, word)| word).join(", ");
            FormatProblem::Content(format!(
                "{text:?} does not say how a label was drawn; the words are: {words}"
            ))
        })
    }

    /// Returns the word for the column `drawn`.
    pub fn word(self) -> &'static str {
        WORDS.iter().find(|&&(drawn, _)| drawn == self).map_or("given", |(_, word)| word)
    }

    /// Decodes a byte of a table; `None` if it stands for no draw.
    pub fn from_byte(byte: u8) -> Option<Self> {
        WORDS.iter().map(|&(drawn, _)| drawn).find(|&drawn| drawn as u8 == byte)
    }

    /// Returns whether a label may be held out: to fit calibrators, sets and thresholds, and to choose between models.
    pub fn may_be_held_out(self) -> bool {
        !matches!(self, Self::Chosen | Self::Audit | Self::Certified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_bytes_are_read_back() {
        for (drawn, word) in WORDS {
            assert_eq!((Drawn::parse(word).unwrap(), drawn.word()), (drawn, word));
            assert_eq!(Drawn::from_byte(drawn as u8), Some(drawn));
        }
        assert_eq!(Drawn::parse("").unwrap(), Drawn::Given);
        let error = Drawn::parse("Random").unwrap_err().to_string();
        assert!(error.contains("\"Random\"") && error.contains("random, by-class"), "{error}");
        assert_eq!(Drawn::from_byte(9), None);
    }
}
