//! The weights of labels in training: those that the user gave, times those of their classes.

use calmix_io::text::counted;
use calmix_recipe::ClassWeight;
use calmix_run::events::Note;

/// Returns the weight of each sample; empty if all are 1. `own` are those that the user gave, empty if none were. Weights of classes
/// are those of scikit-learn's `class_weight="balanced"`: the labels divided by the labels of the class and the number of classes
/// with labels. Their mean over the labels is 1.
pub(crate) fn label_weights(labels: &[Option<u32>], own: &[f64], class_weight: ClassWeight) -> Vec<f64> {
    let ClassWeight::Balanced = class_weight else { return own.to_vec() };
    let classes = labels.iter().flatten().map(|&class| class as usize + 1).max().unwrap_or_default();
    let mut counts = vec![0_u64; classes];
    labels.iter().flatten().for_each(|&class| counts[class as usize] += 1);
    let all: u64 = counts.iter().sum();
    let present = counts.iter().filter(|&&count| count > 0).count();
    let of_class = |class: u32| all as f64 / (present as f64 * counts[class as usize] as f64);
    let own = |row: usize| own.get(row).copied().unwrap_or(1.0);
    labels
        .iter()
        .enumerate()
        .map(|(row, label)| label.map_or(1.0, |class| own(row) * of_class(class)))
        .collect()
}

/// Returns the note that labels have weights, if they do. `is_used` is false if the heads of the run take none.
pub(crate) fn weights_note(weights: &[f64], labels: &[Option<u32>], is_used: bool) -> Option<Note> {
    let of_labels = weights.iter().zip(labels).filter(|(_, label)| label.is_some());
    let of_labels: Vec<f64> = of_labels.map(|(weight, _)| *weight).collect();
    let lowest = of_labels.iter().copied().reduce(f64::min)?;
    let highest = of_labels.iter().copied().reduce(f64::max)?;
    let labels = counted(of_labels.len() as u64, "label");
    let note = |text: String, hint: &str| Some(Note { step: 0, text, hint: hint.to_owned() });
    if !is_used {
        return note(
            format!("the weights of {labels} are not used: only heads on one vector per sample take them"),
            "set network.weak_views and network.strong_views to 0 to use them",
        );
    }
    note(
        format!("{labels} have weights in training, from {lowest:.3} to {highest:.3}"),
        "they come from the column `weight` of the labels and from labels.class_weight; calibration and guarantees do not use them",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_classes_weigh_the_same() {
        let labels = [Some(2), Some(0), Some(2), None, Some(2)];
        let balanced = label_weights(&labels, &[], ClassWeight::Balanced);
        assert_eq!(balanced, [4.0 / 6.0, 2.0, 4.0 / 6.0, 1.0, 4.0 / 6.0]);
        let own = [3.0, 1.0, 1.0, 1.0, 1.0];
        assert_eq!(label_weights(&labels, &own, ClassWeight::Balanced)[0], 2.0);
        assert_eq!(label_weights(&labels, &own, ClassWeight::None), own);
        assert!(label_weights(&labels, &[], ClassWeight::None).is_empty());
    }

    #[test]
    fn note_has_the_weights_of_labels_alone() {
        let note = weights_note(&[0.5, 9.0, 2.0], &[Some(0), None, Some(1)], true).unwrap();
        assert_eq!(note.text, "2 labels have weights in training, from 0.500 to 2.000");
        assert!(weights_note(&[], &[Some(0)], true).is_none());
        assert!(weights_note(&[2.0], &[Some(0)], false).unwrap().text.contains("not used"));
    }
}
