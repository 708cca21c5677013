//! The number of labels that each class gives.

use calmix_core::rng::{Domain, Seed};

use super::plan::{HoldOut, Rule};

/// The time coordinate of a stream of [`Domain::Split`]. Published splits depend on these numbers.
#[derive(Debug, Clone, Copy)]
#[repr(u64)]
pub(super) enum Purpose {
    /// Orders the samples of a class at random.
    Samples = 0,
    /// Chooses the classes that give one more label.
    Labels = 1,
    /// Chooses the classes that give one more validation sample.
    Validation = 2,
}

/// Returns the key of a class in the draw, which depends on its name and not on its number.
pub(super) fn class_key(name: &str) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *blake3::hash(name.as_bytes()).as_bytes();
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// Returns the number of labels that `rule` requests of each class, which may be more than it has.
pub(super) fn wanted(rule: Rule, seed: Seed, classes: &[String], available: &[u64]) -> Vec<u64> {
    match rule {
        Rule::PerClass { labels } => vec![labels; available.len()],
        Rule::Total { labels } => {
            let present = available.iter().filter(|&&count| count > 0).count() as u64;
            let each = labels.checked_div(present).unwrap_or(0);
            let mut wanted: Vec<u64> =
                available.iter().map(|&count| if count > 0 { each } else { 0 }).collect();
            let rest = labels - each * present;
            one_more(&mut wanted, rest, seed, Purpose::Labels, classes, |class, _| available[class] > 0);
            wanted
        }
        Rule::Fraction { share } => shares(share, seed, Purpose::Labels, classes, available, available),
        Rule::Given => available.to_vec(),
    }
}

/// Returns the number of labels that each class gives to the held-out set.
pub(super) fn held_out(how: HoldOut, seed: Seed, classes: &[String], labels: &[u64]) -> Vec<u64> {
    let (share, keeps) = how.share_of(labels.iter().sum());
    let max: Vec<u64> = labels.iter().map(|labels| labels.saturating_sub(keeps)).collect();
    let given = shares(share, seed, Purpose::Validation, classes, labels, &max);
    if how.refuses(given.iter().sum()) { vec![0; labels.len()] } else { given }
}

/// Rounds `share` of each count down, then adds one to classes chosen by the seed among those that were rounded, until the
/// total is `share` of all, rounded. No class gives more than its `max`.
fn shares(
    share: f64,
    seed: Seed,
    purpose: Purpose,
    classes: &[String],
    counts: &[u64],
    max: &[u64],
) -> Vec<u64> {
    let exact: Vec<f64> = counts.iter().map(|&count| share * count as f64).collect();
    let mut given: Vec<u64> =
        exact.iter().zip(max).map(|(exact, &max)| max.min(exact.floor() as u64)).collect();
    let total = (share * counts.iter().sum::<u64>() as f64).round() as u64;
    let missing = total.saturating_sub(given.iter().sum());
    let is_eligible = |class: usize, given: u64| exact[class] > given as f64 && given < max[class];
    one_more(&mut given, missing, seed, purpose, classes, is_eligible);
    given
}

/// Adds one to `count` of the eligible classes, chosen by the seed and their names.
fn one_more(
    numbers: &mut [u64],
    count: u64,
    seed: Seed,
    purpose: Purpose,
    classes: &[String],
    is_eligible: impl Fn(usize, u64) -> bool,
) {
    let mut lots: Vec<(u64, &str, usize)> = classes
        .iter()
        .zip(numbers.iter())
        .enumerate()
        .filter(|(class, (_, number))| is_eligible(*class, **number))
        .map(|(class, (name, _))| {
            let lot = seed.stream(Domain::Split, purpose as u64, class_key(name)).next_u64();
            (lot, name.as_str(), class)
        })
        .collect();
    lots.sort_unstable();
    for (_, _, class) in lots.into_iter().take(count as usize) {
        if let Some(number) = numbers.get_mut(class) {
            *number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|class| format!("class {class}")).collect()
    }

    #[test]
    fn a_remainder_goes_to_classes_chosen_by_the_seed() {
        let available = [9, 9, 0, 9, 9];
        let rule = Rule::Total { labels: 10 };
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..40 {
            let wanted = wanted(rule, Seed(seed), &names(5), &available);
            assert_eq!((wanted.iter().sum::<u64>(), wanted[2]), (10, 0));
            assert!(wanted.iter().zip(available).all(|(w, a)| a == 0 || (2..=3).contains(w)), "{wanted:?}");
            seen.insert(wanted);
        }
        assert_eq!(seen.len(), 6, "each of the (4 choose 2) choices comes up in 40 seeds");
        assert!(wanted(rule, Seed(0), &[], &[]).is_empty());
        assert_eq!(wanted(rule, Seed(0), &names(1), &[0]), [0]);
    }

    #[test]
    fn a_share_of_each_class_is_a_share_of_all() {
        let seed = Seed(1);
        // 0.29 · 100 is 28.999999999999996 in binary; a tenth of 5 is a half.
        let even = wanted(Rule::Fraction { share: 0.29 }, seed, &names(10), &[100; 10]);
        assert_eq!(even, [29; 10]);
        let halves = wanted(Rule::Fraction { share: 0.1 }, seed, &names(8), &[5; 8]);
        assert_eq!((halves.iter().sum::<u64>(), halves.iter().max()), (4, Some(&1)));
        let all = wanted(Rule::Fraction { share: 1.0 }, seed, &names(3), &[1, 0, 7]);
        assert_eq!(all, [1, 0, 7]);
    }

    #[test]
    fn no_class_gives_its_last_label_to_validation() {
        for seed in (0..20).map(Seed) {
            // Half of seven is rounded to four; classes with a single label keep it, and the fourth class was not rounded.
            assert_eq!(held_out(HoldOut::Share(0.5), seed, &names(4), &[1, 1, 1, 4]), [0, 0, 0, 2]);
            // A third of four is one, and only the second class can give it.
            assert_eq!(held_out(HoldOut::Share(0.34), seed, &names(3), &[1, 2, 1]), [0, 1, 0]);
        }
        assert_eq!(held_out(HoldOut::NONE, Seed(3), &names(2), &[4, 4]), [0, 0]);
    }

    #[test]
    fn hold_out_fifth_keeps_two_per_class() {
        let held = |labels: &[u64]| held_out(HoldOut::FIFTH, Seed(1), &names(labels.len()), labels);
        assert_eq!(held(&[25; 10]), [5; 10]);
        assert_eq!(held(&[1_000; 10]), [50; 10], "at most 500");
        assert_eq!(held(&[22, 22]), [0, 0], "nine of 44 are too few");
        assert_eq!(held(&[25, 25]), [5, 5]);
        assert_eq!(held(&[4; 10]), [0; 10], "eight of forty are too few");
        assert_eq!(held(&[2; 100]), [0; 100], "every class keeps two");
        // The classes with one or two labels give none.
        let mixed = held(&[74, 3, 2, 1]);
        assert_eq!((mixed[2], mixed[3], mixed.iter().sum::<u64>()), (0, 0, mixed[0] + mixed[1]));
        assert!(mixed[0] >= 14 && mixed[1] <= 1, "{mixed:?}");
    }
}
