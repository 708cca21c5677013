//! What an answer does to a row of a list.

use calmix_formats::labels::drawn::Drawn;

/// What an answer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The row has its first label.
    Added,
    /// The row keeps its label, which the answer repeats.
    Confirmed,
    /// The row has another label than before.
    Corrected,
    /// The row stays without a label, and counts as skipped.
    Skipped,
    /// The row stays as it is: it was skipped, but has a label.
    Kept,
    /// The row has another label, which only `--replace` replaces.
    Conflict,
}

/// The row of a list before an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListedLabel<'a> {
    pub(crate) label: Option<&'a str>,
    pub(crate) drawn: Drawn,
}

/// Returns what an answer (`None` for a skipped row) does to a row, and how its label is then drawn.
pub(crate) fn merge(
    row: ListedLabel<'_>,
    answer: Option<&str>,
    drawn: Option<Drawn>,
    may_replace: bool,
) -> (Effect, Drawn) {
    match (row.label, answer) {
        (None, None) => (Effect::Skipped, Drawn::Skipped),
        (Some(_), None) => (Effect::Kept, row.drawn),
        (None, Some(_)) => (Effect::Added, drawn_of_new(drawn)),
        (Some(old), Some(new)) if old == new => (Effect::Confirmed, upgraded(row.drawn, drawn)),
        (Some(_), Some(_)) if may_replace => (Effect::Corrected, upgraded(row.drawn, drawn)),
        (Some(_), Some(_)) => (Effect::Conflict, row.drawn),
    }
}

/// Returns how the label of an answer was drawn.
fn drawn_of_new(drawn: Option<Drawn>) -> Drawn {
    match drawn {
        // Whoever answers without a mark picked the sample by hand.
        None => Drawn::Chosen,
        // Drawn at random, skipped at first, and answered later.
        Some(Drawn::Skipped) => Drawn::Random,
        Some(drawn) => drawn,
    }
}

/// Returns the mark of a label that two draws brought up. A random draw stays one if the sample was also chosen, as long as it
/// would have been asked in any case; all other marks stay, because the label existed before the review.
pub(crate) fn upgraded(mark: Drawn, drawn: Option<Drawn>) -> Drawn {
    match (mark, drawn) {
        (Drawn::Chosen, Some(drawn @ (Drawn::Random | Drawn::ByClass))) => drawn,
        (mark, _) => mark,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_of_an_answer() {
        use Drawn::{ByClass, Chosen, Given, Random, Skipped};
        let cat = Some("cat");
        let dog = Some("dog");
        for (label, mark, answer, drawn, may_replace, expected) in [
            (None, Given, cat, Some(Random), false, (Effect::Added, Random)),
            (None, Skipped, cat, Some(Chosen), false, (Effect::Added, Chosen)),
            (None, Given, cat, None, false, (Effect::Added, Chosen)),
            (None, Given, cat, Some(Skipped), false, (Effect::Added, Random)),
            (None, Given, cat, Some(Given), false, (Effect::Added, Given)),
            (None, Given, None, Some(Skipped), false, (Effect::Skipped, Skipped)),
            (cat, Random, None, Some(Skipped), true, (Effect::Kept, Random)),
            (cat, Given, cat, Some(Random), false, (Effect::Confirmed, Given)),
            (cat, Given, cat, Some(Chosen), false, (Effect::Confirmed, Given)),
            (cat, Random, cat, Some(Chosen), false, (Effect::Confirmed, Random)),
            (cat, Chosen, cat, Some(ByClass), false, (Effect::Confirmed, ByClass)),
            (cat, Chosen, dog, Some(Random), true, (Effect::Corrected, Random)),
            (cat, Random, dog, Some(Chosen), true, (Effect::Corrected, Random)),
            (cat, Given, dog, None, true, (Effect::Corrected, Given)),
            (cat, Chosen, dog, Some(Random), false, (Effect::Conflict, Chosen)),
        ] {
            let row = ListedLabel { label, drawn: mark };
            assert_eq!(merge(row, answer, drawn, may_replace), expected, "{row:?} {answer:?} {drawn:?}");
        }
    }
}
