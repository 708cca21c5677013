//! Groups: stored beside the table, on one side of every split, and refused if the table of them is not sound.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use calmix_core::rng::Seed;
use calmix_data::manifest::ManifestBuilder;
use calmix_data::prepare::Report;
use calmix_data::split::{HoldOut, LabelSplit, Rule, SplitPlan};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::tiny::{PIXEL, Tiny};

/// A label and a group of a sample.
type Sample = (Option<u32>, Option<u8>);

/// One-pixel samples of three classes in groups.
fn grouped(subsets: &[(&str, &[Sample])]) -> Tiny {
    let root = tempfile::tempdir().unwrap();
    let classes = ["a", "b", "c"].map(str::to_owned).to_vec();
    let mut builder = ManifestBuilder::new(&root.path().join("prepared"), classes, PIXEL).unwrap();
    for (name, samples) in subsets {
        let bytes: Vec<u8> = (0..samples.len()).map(|byte| byte as u8).collect();
        fs::write(root.path().join(name), &bytes).unwrap();
        builder.subset(name);
        let part = builder.part(name, bytes.len() as u64).unwrap();
        for (offset, ((label, group), byte)) in (0..).zip(samples.iter().zip(&bytes)) {
            builder.sample(part, offset, &[*byte], *label).unwrap();
            if let Some(group) = group {
                builder.set_group(&format!("patient {group}")).unwrap();
            }
        }
    }
    builder.finish().unwrap();
    Tiny { root }
}

fn plan(seed: u64, validation: HoldOut) -> SplitPlan {
    let rule = Rule::Fraction { share: 1.0 };
    SplitPlan { rule, validation, ..SplitPlan::new(Seed(seed), "train") }
}

#[test]
fn groups_are_numbered_by_first_sample() {
    let samples = [(Some(0), None), (Some(1), Some(9)), (None, Some(4)), (Some(2), Some(9)), (Some(0), None)];
    let tiny = grouped(&[("train", &samples)]);
    let dataset = tiny.open();
    let groups: Vec<Option<u32>> = (0..5).map(|id| dataset.group(id).unwrap()).collect();
    assert_eq!(groups, [None, Some(0), Some(1), Some(0), None]);
    assert_eq!((dataset.header().groups, dataset.has_groups()), (Some(2), true));
    assert_eq!(dataset.group_numbers(&[0, 1, 3]).unwrap(), [0, 1, 1]);
    assert!(dataset.group_numbers(&[0, 1, 2, 4]).unwrap().is_empty(), "no two are in one group");
    dataset.group(5).unwrap_err();
    dataset.verify().unwrap();
}

#[test]
fn table_without_groups_stays_as_it_was() {
    let tiny = Tiny::with_counts(&["a", "b", "c"], &[2, 2, 2]);
    assert!(!tiny.file("groups.bin").exists());
    let header = fs::read_to_string(tiny.file("manifest.json")).unwrap();
    assert!(!header.contains("groups"), "{header}");
    let dataset = tiny.open();
    assert!(!dataset.has_groups() && dataset.group(0).unwrap().is_none());
    assert!(dataset.group_numbers(&[0, 1]).unwrap().is_empty());
    let split = LabelSplit::draw(&dataset, plan(0, HoldOut::NONE)).unwrap();
    assert_eq!(split.counts(&dataset).unwrap().groups, None);
}

#[test]
fn groups_are_part_of_the_fingerprint() {
    let fingerprint = |groups: [Option<u8>; 3]| {
        let samples = groups.map(|group| (Some(0), group));
        grouped(&[("train", &samples)]).open().fingerprint().to_owned()
    };
    let all = [[None; 3], [Some(1), Some(1), None], [None, Some(1), Some(1)], [Some(1), Some(2), None]];
    let different: BTreeSet<String> = all.into_iter().map(fingerprint).collect();
    assert_eq!(different.len(), all.len());
    // What a group is called does not matter.
    assert_eq!(fingerprint([Some(1), Some(1), None]), fingerprint([Some(7), Some(7), None]));
}

#[test]
fn damaged_table_of_groups_is_refused() {
    let samples = [(Some(0), Some(1)), (Some(1), None), (Some(2), Some(1))];
    let tiny = grouped(&[("train", &samples)]);
    let whole = fs::read(tiny.file("groups.bin")).unwrap();
    for length in 0..whole.len() {
        fs::write(tiny.file("groups.bin"), &whole[..length]).unwrap();
        assert!(tiny.refusal().contains("groups.bin"));
    }
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(tiny.file("groups.bin"), changed).unwrap();
        assert!(
            tiny.refusal().contains("groups.bin") && tiny.refusal().contains("prepare the dataset again")
        );
    }
    fs::remove_file(tiny.file("groups.bin")).unwrap();
    tiny.refusal();
    fs::write(tiny.file("groups.bin"), &whole).unwrap();
    let header = tiny.header();
    for groups in [json!(null), json!(0), json!(4), json!(-1), json!(u64::MAX)] {
        let mut changed = header.clone();
        changed["groups"] = groups;
        tiny.write_header(&changed);
        assert!(tiny.refusal().contains("manifest.json"));
    }
}

#[test]
fn group_beyond_the_last_is_refused() {
    let samples = [(Some(0), Some(1)), (Some(1), Some(2)), (Some(2), Some(1))];
    let tiny = grouped(&[("train", &samples)]);
    let mut header = tiny.header();
    // Its own fingerprint does not count groups, so the header is genuine.
    header["groups"] = json!(1);
    tiny.write_header(&header);
    let dataset = tiny.open();
    let error = dataset.group(1).unwrap_err().to_string();
    assert!(error.contains("sample 1: its group is 1, but there are 1 groups"), "{error}");
    dataset.group_numbers(&[0, 1]).unwrap_err();
}

#[test]
fn labels_alone_in_their_groups_split_as_without() {
    let samples: Vec<Sample> = (0..60).map(|id| (Some(id % 3), None)).collect();
    let without = Tiny::with_counts(&["a", "b", "c"], &[20, 20, 20]);
    let mut alone = samples.clone();
    alone.push((None, Some(1)));
    let alone = grouped(&[("train", &alone)]);
    for seed in 0..20 {
        for validation in [HoldOut::NONE, HoldOut::Share(0.25), HoldOut::FIFTH] {
            let expected = LabelSplit::draw(&without.open(), plan(seed, validation)).unwrap();
            let split = LabelSplit::draw(&alone.open(), plan(seed, validation)).unwrap();
            assert_eq!(split.labelled(), expected.labelled());
            assert_eq!(split.validation(), expected.validation());
        }
    }
}

#[test]
fn held_out_share_counts_groups() {
    // Twenty patients of each class, with one to five photos each.
    let patients = (0..60_u8).flat_map(|patient| (0..=patient / 3 % 5).map(move |_| patient));
    let samples: Vec<Sample> =
        patients.map(|patient| (Some(u32::from(patient) % 3), Some(patient))).collect();
    let tiny = grouped(&[("train", &samples)]);
    let dataset = tiny.open();
    for (validation, expected) in [(HoldOut::Share(0.25), 5), (HoldOut::FIFTH, 4)] {
        for seed in 0..20 {
            let split = LabelSplit::draw(&dataset, plan(seed, validation)).unwrap();
            let held: BTreeSet<(u32, u32)> = split
                .validation()
                .iter()
                .map(|&id| (dataset.label(id).unwrap().unwrap(), dataset.group(id).unwrap().unwrap()))
                .collect();
            for class in 0..3 {
                assert_eq!(held.iter().filter(|(of, _)| *of == class).count(), expected, "seed {seed}");
            }
            let counts = split.counts(&dataset).unwrap();
            assert_eq!(counts.groups, Some(60 - 3 * expected as u64));
        }
    }
}

#[test]
fn unlabelled_samples_of_held_out_groups_are_left_out() {
    let mut samples: Vec<Sample> = (0..30).map(|n| (Some(u32::from(n) % 3), Some(n))).collect();
    samples.extend((0..30).map(|n| (None, Some(n))));
    samples.push((None, None));
    let tiny = grouped(&[("train", &samples)]);
    let dataset = tiny.open();
    let split = LabelSplit::draw(&dataset, plan(1, HoldOut::Share(0.2))).unwrap();
    assert_eq!(split.validation().len(), 6);
    let unlabelled = split.unlabelled(&dataset).unwrap();
    let expected: Vec<u64> =
        (30..61).filter(|id| split.validation().binary_search(&(id - 30)).is_err()).collect();
    let ids: Vec<u64> = (0..unlabelled.len()).filter_map(|place| unlabelled.id(place)).collect();
    assert_eq!(ids, expected);
}

#[test]
fn split_with_a_group_on_both_sides_is_refused() {
    let samples: Vec<Sample> = (0..12).map(|n| (Some(u32::from(n) % 3), Some(n / 6))).collect();
    let tiny = grouped(&[("train", &samples)]);
    let dataset = tiny.open();
    let split = LabelSplit::draw(&dataset, plan(1, HoldOut::NONE)).unwrap();
    let path = tiny.root.path().join("split.json");
    split.write(&path).unwrap();
    assert_eq!(LabelSplit::read(&path, &dataset).unwrap(), split);
    let mut file: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    file["validation"] = file["labelled"].as_array_mut().unwrap().split_off(11).into();
    fs::write(&path, file.to_string()).unwrap();
    let error = LabelSplit::read(&path, &dataset).unwrap_err().to_string();
    assert!(error.contains("sample 6 is labelled and sample 11 of its group is held out"), "{error}");
}

#[test]
fn summary_counts_groups_of_labels() {
    let train = [(Some(0), Some(1)), (Some(0), Some(1)), (Some(1), None), (None, Some(5))];
    let test = [(Some(0), Some(1)), (Some(2), Some(2)), (Some(1), Some(5))];
    let tiny = grouped(&[("train", &train), ("test", &test)]);
    let report = Report::of_table(&tiny.open()).unwrap();
    let text = report.to_string();
    assert!(text.contains("\ngroups: train 3 labels in 2 groups, test 3 labels in 3 groups"), "{text}");
    let warning = "warning: 1 group has labels in two subsets, such as train and test: metrics on one of them are better \
                   than on samples of new groups";
    assert!(text.contains(warning), "{text}");
    let without = Report::of_table(&Tiny::with_counts(&["a", "b"], &[2, 2]).open()).unwrap();
    assert!(!without.to_string().contains("group") && without.subsets[0].groups.is_none());
    assert!(!serde_json::to_string(&without).unwrap().contains("group"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_group_is_on_two_sides(
        samples in proptest::collection::vec((0_u32..3, proptest::option::weighted(0.8, 0_u8..12)), 6..80),
        seed in 0_u64..1_000,
        share in 0.05_f64..0.9,
        keep in 0.3_f64..1.0,
    ) {
        let samples: Vec<Sample> = samples.into_iter().map(|(label, group)| (Some(label), group)).collect();
        let tiny = grouped(&[("train", &samples)]);
        let dataset = tiny.open();
        for validation in [HoldOut::Share(share), HoldOut::FIFTH] {
            let plan = SplitPlan { rule: Rule::Fraction { share: keep }, ..plan(seed, validation) };
            let Ok(split) = LabelSplit::draw(&dataset, plan.clone()) else { continue };
            let groups = |ids: &[u64]| -> BTreeSet<u32> {
                ids.iter().filter_map(|&id| dataset.group(id).unwrap()).collect()
            };
            let held = groups(split.validation());
            prop_assert!(held.is_disjoint(&groups(split.labelled())));
            let unlabelled = split.unlabelled(&dataset).unwrap();
            let unlabelled: Vec<u64> = (0..unlabelled.len()).filter_map(|place| unlabelled.id(place)).collect();
            prop_assert!(held.is_disjoint(&groups(&unlabelled)));
            // The labels that are drawn are those that are drawn without groups, and every class keeps some.
            let none = LabelSplit::draw(&dataset, SplitPlan { validation: HoldOut::NONE, ..plan }).unwrap();
            let mut all = [split.labelled(), split.validation()].concat();
            all.sort_unstable();
            prop_assert_eq!(all, none.labelled());
            let mut kept = BTreeMap::new();
            for id in none.labelled() {
                let is_kept = split.labelled().binary_search(id).is_ok();
                *kept.entry(dataset.label(*id).unwrap()).or_insert(false) |= is_kept;
            }
            prop_assert!(kept.values().all(|is_kept| *is_kept), "{kept:?}");
        }
    }
}
