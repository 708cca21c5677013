//! Splits: seeded, balanced, each id once, strict when read back.

use std::collections::BTreeSet;
use std::fs;

use calmix_core::rng::Seed;
use calmix_data::dataset::Dataset;
use calmix_data::split::{HoldOut, LabelSplit, Rule, Shortfall, SplitPlan};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::tiny::{Subset, Tiny};

fn plan(seed: u64, rule: Rule) -> SplitPlan {
    SplitPlan { rule, ..SplitPlan::new(Seed(seed), "train") }
}

fn per_class(labels: u64) -> Rule {
    Rule::PerClass { labels }
}

/// A plan that draws some labels of each class, and holds a share of them out.
fn held_out(seed: u64, labels: u64, share: f64) -> SplitPlan {
    SplitPlan { validation: HoldOut::Share(share), ..plan(seed, per_class(labels)) }
}

fn names_of(dataset: &Dataset, ids: &[u64]) -> Vec<String> {
    ids.iter().map(|id| dataset.classes()[dataset.label(*id).unwrap().unwrap() as usize].clone()).collect()
}

#[test]
fn split_of_a_seed_never_changes() {
    let tiny = Tiny::with_counts(&["a", "b", "c"], &[20, 20, 20]);
    let dataset = tiny.open();
    let split = LabelSplit::draw(&dataset, held_out(7, 4, 0.25)).unwrap();
    assert_eq!((split.labelled(), split.validation()), (PINNED.0.as_slice(), PINNED.1.as_slice()));
    let other = LabelSplit::draw(&dataset, plan(8, per_class(4))).unwrap();
    assert_ne!(other.labelled(), split.labelled());
}

// Published splits rely on these numbers: they change with the format of split.json or not at all.
const PINNED: ([u64; 9], [u64; 3]) = ([0, 1, 5, 9, 17, 33, 43, 44, 49], [28, 56, 57]);

#[test]
fn a_class_draws_by_its_name_whatever_its_place_and_its_neighbours() {
    let first = Tiny::with_counts(&["a", "b"], &[10, 10]);
    let second = Tiny::with_counts(&["b", "c", "a"], &[10, 4, 10]);
    let ranks = |tiny: &Tiny, name: &str| {
        let dataset = tiny.open();
        let split = LabelSplit::draw(&dataset, plan(3, per_class(3))).unwrap();
        let of_class = |id: &u64| names_of(&dataset, &[*id])[0] == name;
        let members: Vec<u64> = (0..dataset.len()).filter(of_class).collect();
        let rank = |id: &u64| members.iter().position(|member| member == id);
        split.labelled().iter().filter_map(rank).collect::<Vec<_>>()
    };
    for name in ["a", "b"] {
        assert_eq!(ranks(&first, name), ranks(&second, name));
    }
    assert_ne!(ranks(&first, "a"), ranks(&first, "b"));
}

#[test]
fn small_classes_give_all_labels() {
    let tiny = Tiny::with_counts(&["one", "two", "none", "many"], &[1, 2, 0, 30]);
    let dataset = tiny.open();
    let split = LabelSplit::draw(&dataset, plan(0, per_class(3))).unwrap();
    let counts = split.counts(&dataset).unwrap();
    assert_eq!(counts.per_class, [1, 2, 0, 3]);
    let short = |class: &str, given| Shortfall { class: class.into(), wanted: 3, given };
    assert_eq!(split.short(), [short("one", 1), short("two", 2), short("none", 0)]);
    let all = LabelSplit::draw(&dataset, plan(0, per_class(u64::MAX))).unwrap();
    assert_eq!(all.labelled().len(), 33);
    assert!(all.unlabelled(&dataset).unwrap().is_empty());
    let single = Tiny::with_counts(&["only"], &[1]);
    let split = LabelSplit::draw(&single.open(), held_out(0, 1, 0.9)).unwrap();
    assert_eq!((split.labelled(), split.validation()), ([0].as_slice(), [].as_slice()));
}

#[test]
fn unlabelled_set_includes_labelled_on_request_only() {
    let tiny = Tiny::with_counts(&["a", "b"], &[10, 10]);
    let dataset = tiny.open();
    for include_labelled in [false, true] {
        let plan = SplitPlan { include_labelled, ..held_out(5, 4, 0.5) };
        let split = LabelSplit::draw(&dataset, plan).unwrap();
        let set = split.unlabelled(&dataset).unwrap();
        let counts = split.counts(&dataset).unwrap();
        let expected = if include_labelled { (16, 4) } else { (12, 0) };
        assert_eq!((counts.labelled, counts.validation), (4, 4));
        assert_eq!((counts.unlabelled, counts.in_both), expected);
        assert!(split.validation().iter().all(|id| set.position(*id).is_none()));
        assert!(split.labelled().iter().all(|id| set.position(*id).is_some() == include_labelled));
    }
}

#[test]
fn unlabelled_samples_come_from_other_subsets_as_well() {
    let labelled: Vec<_> = (0..6).map(|n| (n, Some(u32::from(n % 2)))).collect();
    let extra: Vec<_> = (10..14).map(|n| (n, None)).collect();
    let subsets: [Subset<'_>; 3] = [("train", &labelled), ("test", &labelled[..2]), ("unlabelled", &extra)];
    let tiny = Tiny::new(&["a", "b"], &subsets);
    let dataset = tiny.open();
    let both = vec!["unlabelled".into(), "train".into(), "train".into()];
    let split = LabelSplit::draw(&dataset, SplitPlan { unlabelled: both, ..plan(0, per_class(1)) }).unwrap();
    let set = split.unlabelled(&dataset).unwrap();
    let ids: BTreeSet<u64> = (0..set.len()).map(|position| set.id(position).unwrap()).collect();
    let expected: BTreeSet<u64> = (0..6).chain(8..12).filter(|id| !split.labelled().contains(id)).collect();
    assert_eq!((ids, set.len()), (expected, 8));
    for wrong in [vec!["nowhere".to_owned()], vec![String::new()]] {
        let unlabelled = SplitPlan { unlabelled: wrong.clone(), ..plan(0, per_class(1)) };
        for plan in [unlabelled, SplitPlan { labelled: wrong, ..plan(0, per_class(1)) }] {
            LabelSplit::draw(&dataset, plan).unwrap_err();
        }
    }
    let none = SplitPlan { labelled: vec!["unlabelled".into()], ..plan(0, per_class(1)) };
    let error = LabelSplit::draw(&dataset, none).unwrap_err().to_string();
    assert!(error.contains("no sample of unlabelled has a label"), "{error}");
}

/// Three labelled samples and one without a label to train on, and one to test on.
fn with_test() -> Tiny {
    let train = [(0, Some(0)), (1, Some(1)), (2, None), (3, Some(0))];
    Tiny::new(&["a", "b"], &[("train", &train), ("test", &[(4, Some(0))])])
}

#[test]
fn given_list_of_labels_is_kept_or_refused() {
    let tiny = with_test();
    let dataset = tiny.open();
    let given =
        |ids: &[u64], validation| LabelSplit::given(&dataset, held_out(1, 9, validation), ids.to_vec());
    let split = given(&[3, 0, 1], 0.0).unwrap();
    assert_eq!((split.labelled(), split.plan().rule), ([0, 1, 3].as_slice(), Rule::Given));
    let held = given(&[3, 0, 1], 0.34).unwrap();
    assert_eq!((held.labelled().len(), held.validation().len()), (2, 1));
    assert_eq!(names_of(&dataset, held.validation()), ["a"], "the only b stays");
    for wrong in [vec![0, 0], vec![2], vec![4], vec![99], vec![]] {
        assert!(given(&wrong, 0.0).is_err(), "{wrong:?}");
    }
    assert!(LabelSplit::draw(&dataset, plan(0, Rule::Given)).is_err());
}

#[test]
fn split_plans_out_of_range_are_refused() {
    let tiny = Tiny::with_counts(&["a"], &[4]);
    let dataset = tiny.open();
    let shares = [0.0, -0.5, 1.5, f64::NAN, f64::INFINITY].map(|share| Rule::Fraction { share });
    for rule in shares.into_iter().chain([per_class(0), Rule::Total { labels: 0 }]) {
        assert!(LabelSplit::draw(&dataset, plan(0, rule)).is_err(), "{rule:?}");
    }
    for share in [1.0, -0.1, f64::NAN] {
        assert!(LabelSplit::draw(&dataset, held_out(0, 1, share)).is_err());
    }
}

#[test]
fn split_file_is_read_strictly() {
    let tiny = with_test();
    let dataset = tiny.open();
    let split = LabelSplit::draw(&dataset, held_out(1, 2, 0.4)).unwrap();
    assert_eq!((split.labelled().len(), split.validation().len()), (2, 1));
    let path = tiny.root.path().join("split.json");
    split.write(&path).unwrap();
    split.write(&path).unwrap();
    assert_eq!(LabelSplit::read(&path, &dataset).unwrap(), split);
    assert_eq!(fs::read_dir(tiny.root.path()).unwrap().count(), 4, "a temporary file is left");

    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() - 1 {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(LabelSplit::read(&path, &dataset).is_err(), "cut to {length} bytes");
    }
    let value: Value = serde_json::from_slice(&whole).unwrap();
    for (place, wrong) in [
        ("/version", json!(0)),
        ("/dataset", json!("0".repeat(64))),
        ("/dataset", json!("é")),
        ("/plan/seed", json!(-1)),
        ("/plan/rule", json!("all")),
        ("/plan/rule", json!({"fraction": {"share": 2.0}})),
        ("/plan/validation", json!(1)),
        ("/plan/labelled", json!(["nowhere"])),
        ("/plan/unlabelled", json!(["nowhere"])),
        ("/plan/include_labelled", json!(1)),
        ("/labelled", json!([0, 0])),
        ("/labelled", json!([3, 0])),
        ("/labelled", json!([2])),
        ("/labelled", json!([4])),
        ("/labelled", json!([u64::MAX])),
        ("/labelled", json!([0.5])),
        ("/validation", json!(split.labelled())),
    ] {
        let mut changed = value.clone();
        *changed.pointer_mut(place).unwrap() = wrong.clone();
        fs::write(&path, changed.to_string()).unwrap();
        assert!(LabelSplit::read(&path, &dataset).is_err(), "{place} = {wrong}");
    }
    let mut unknown = value.clone();
    unknown["more"] = json!(1);
    fs::write(&path, unknown.to_string()).unwrap();
    assert!(LabelSplit::read(&path, &dataset).is_err());
    fs::write(&path, &whole).unwrap();
    let other = Tiny::with_counts(&["a", "b"], &[3, 3]);
    let error = LabelSplit::read(&path, &other.open()).unwrap_err().to_string();
    assert!(error.contains("the split belongs to the dataset"), "{error}");
}

/// The unlabelled samples that a list chose are differences in the file, and part of its hash.
#[test]
fn listed_pool_is_read_strictly() {
    let tiny = Tiny::with_counts(&["a", "b"], &[10, 10]);
    let dataset = tiny.open();
    let split = LabelSplit::draw(&dataset, held_out(5, 4, 0.5)).unwrap();
    let all = split.unlabelled(&dataset).unwrap();
    let free: Vec<u64> = (0..all.len()).filter_map(|position| all.id(position)).collect();
    let path = tiny.root.path().join("split.json");
    let value: Value = serde_json::from_slice(&split.to_bytes().unwrap()).unwrap();
    let with = |pool: Value| {
        let mut changed = value.clone();
        changed["unlabelled"] = pool;
        fs::write(&path, changed.to_string()).unwrap();
        LabelSplit::read(&path, &dataset)
    };
    let listed = with(json!([free[1], free[4] - free[1], free[5] - free[4]])).unwrap();
    let set = listed.unlabelled(&dataset).unwrap();
    let ids: Vec<u64> = (0..set.len()).filter_map(|position| set.id(position)).collect();
    assert_eq!(ids, [free[1], free[4], free[5]]);
    assert!(listed.is_listed() && !split.is_listed());
    assert_eq!(listed.counts(&dataset).unwrap().unlabelled, 3);
    assert_ne!(listed.hash().unwrap(), split.hash().unwrap());
    listed.write(&path).unwrap();
    assert_eq!(LabelSplit::read(&path, &dataset).unwrap(), listed);
    let (labelled, validation) = (split.labelled()[0], split.validation()[0]);
    let lists =
        json!([[], [free[1], 0], [free[1], -1], [free[1], u64::MAX], [0.5], [20], [labelled], [validation]]);
    for pool in lists.as_array().unwrap().iter().chain(&[json!(null), json!("all")]) {
        assert!(with(pool.clone()).is_err(), "{pool}");
    }
}

fn rules() -> impl Strategy<Value = Rule> {
    prop_oneof![
        (1_u64..12).prop_map(per_class),
        (1_u64..40).prop_map(|labels| Rule::Total { labels }),
        (0.01_f64..=1.0).prop_map(|share| Rule::Fraction { share }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_id_has_one_place_and_classes_get_their_share(
        counts in proptest::collection::vec(0_usize..12, 1..6),
        rule in rules(),
        validation in 0.0_f64..0.9,
        include_labelled: bool,
        seed: u64,
    ) {
        let names = ["a", "b", "c", "d", "e"];
        let tiny = Tiny::with_counts(&names[..counts.len()], &counts);
        let dataset = tiny.open();
        let plan = SplitPlan { validation: HoldOut::Share(validation), include_labelled, ..plan(seed, rule) };
        let Ok(split) = LabelSplit::draw(&dataset, plan.clone()) else {
            // Nothing to draw from, or a share that rounds to nothing.
            let total: usize = counts.iter().sum();
            let nothing = matches!(rule, Rule::Fraction { share } if (share * total as f64).round() == 0.0);
            prop_assert!(total == 0 || nothing);
            return Ok(());
        };
        prop_assert_eq!(&LabelSplit::draw(&dataset, plan).unwrap(), &split);
        let set = split.unlabelled(&dataset).unwrap();
        for id in 0..dataset.len() {
            let labelled = split.labelled().binary_search(&id).is_ok();
            let held = split.validation().binary_search(&id).is_ok();
            let unlabelled = set.position(id).is_some();
            prop_assert!(!held || !(labelled || unlabelled));
            prop_assert_eq!(unlabelled, !held && (include_labelled || !labelled));
        }
        let mut given = vec![0_u64; counts.len()];
        for id in split.labelled().iter().chain(split.validation()) {
            given[dataset.label(*id).unwrap().unwrap() as usize] += 1;
        }
        let present = counts.iter().filter(|count| **count > 0).count() as u64;
        for (class, (&given, &count)) in given.iter().zip(&counts).enumerate() {
            let count = count as u64;
            let (least, most) = match rule {
                Rule::PerClass { labels } => (labels.min(count), labels.min(count)),
                Rule::Total { labels } => ((labels / present).min(count), labels.div_ceil(present).min(count)),
                Rule::Fraction { share } => ((share * count as f64).floor() as u64, (share * count as f64).ceil() as u64),
                Rule::Given => unreachable!(),
            };
            prop_assert!((least..=most).contains(&given), "class {} gives {}, not in {}..={}", class, given, least, most);
        }
        for (class, &given) in given.iter().enumerate() {
            let kept = split.counts(&dataset).unwrap().per_class[class];
            prop_assert!(given == 0 || kept > 0, "a class lost its last label");
        }
        if let Rule::Fraction { share } = rule {
            let total: usize = counts.iter().sum();
            prop_assert_eq!(given.iter().sum::<u64>(), (share * total as f64).round() as u64);
        }
        let path = tiny.root.path().join("split.json");
        split.write(&path).unwrap();
        prop_assert_eq!(LabelSplit::read(&path, &dataset).unwrap(), split);
    }
}

/// A run with many labels must be able to read back what it wrote.
#[test]
fn large_split_is_stored_as_plan_and_hash() {
    let tiny = Tiny::with_counts(&["a", "b"], &[80_000, 70_000]);
    let dataset = tiny.open();
    let plan = SplitPlan { validation: HoldOut::Share(0.1), ..plan(3, Rule::Fraction { share: 1.0 }) };
    let split = LabelSplit::draw(&dataset, plan.clone()).unwrap();
    let bytes = split.to_bytes().unwrap();
    assert!(bytes.len() < 1_000, "{} bytes", bytes.len());
    let path = tiny.root.path().join("split.json");
    split.write(&path).unwrap();
    assert_eq!(LabelSplit::read(&path, &dataset).unwrap(), split);

    let json: Value = serde_json::from_slice(&bytes).unwrap();
    let reading = |json: Value| {
        LabelSplit::from_bytes(json.to_string().as_bytes(), &path, &dataset).unwrap_err().to_string()
    };
    let mut other = json.clone();
    other["plan"]["seed"] = 4.into();
    assert!(reading(other).contains("draws other labels than those of the split"));
    let mut both = json.clone();
    both["labelled"] = json!([1]);
    assert!(reading(both).contains("a hash in place of ids"));
    let mut given = json;
    given["plan"]["rule"] = json!("given");
    assert!(reading(given).contains("nothing to draw"));

    // A given list is not a function of anything.
    let given = LabelSplit::given(&dataset, plan, split.labelled().to_vec()).unwrap();
    let bytes = given.to_bytes().unwrap();
    assert!(bytes.len() > 500_000);
    assert_eq!(LabelSplit::from_bytes(&bytes, &path, &dataset).unwrap(), given);
}
