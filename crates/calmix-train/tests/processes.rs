//! One run on one, two and four processes: the same bits, whoever runs what.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // in the functions that the tests share
#![allow(clippy::print_stderr, clippy::print_stdout)] // what a process says to the test that started it

#[path = "processes/crew.rs"]
mod crew;
#[path = "processes/faults.rs"]
mod faults;
#[allow(dead_code)]
#[path = "training/made.rs"]
mod made;
#[path = "processes/torchrun.rs"]
mod torchrun;
#[path = "processes/traffic.rs"]
mod traffic;

use crew::Crew;

/// What a process is: not a test, but what the tests below start.
#[test]
#[ignore = "the other tests of this file run it, in processes of its own"]
fn one_of_them() {
    crew::one_of_them();
}

const METHODS: [(&str, &[&str]); 3] = [
    ("fixmatch", &["method.base=fixmatch", "method.fixmatch.threshold=0.2"]),
    ("flexmatch", &["method.base=flexmatch", "method.flexmatch.threshold=0.2", "train.step=lean"]),
    (
        "softmatch",
        &["method.base=softmatch", "method.mixup.start.rule=utilisation", "method.mixup.start.level=0.1"],
    ),
];

const CUTS: [(&str, [&str; 2]); 2] = [
    ("one-group", ["train.groups=1", "train.shards=4"]),
    ("two-groups", ["train.groups=2", "train.shards=2"]),
];

/// A hundred steps of each method with CalibrateMix.
const LONG: [&str; 5] =
    ["train.steps=100", "train.batch=8", "evaluate.every=30", "checkpoint.every=25", "evaluate.batch=7"];

fn same_bits(method: usize) {
    let bench = made::Bench::new();
    let (name, settings) = METHODS[method];
    for (cut, parts) in CUTS {
        let settings = [settings, &parts, &LONG].concat();
        let crew = |run: &str| Crew::new(&bench, &format!("{name}-{cut}-{run}"), &settings);
        let one = crew("one");
        one.train(1);
        for (run, size) in [("two", 2), ("four", 4)] {
            let other = crew(run);
            other.train(size);
            assert_eq!(
                made::differing(&one.run, &other.run),
                Vec::<String>::new(),
                "{name}, {cut}, {size} processes"
            );
        }
        // Stopped on four, resumed on two, finished on one.
        let changing = crew("changing");
        Crew { until: Some(34), ..changing.clone() }.train(4);
        Crew { until: Some(67), ..changing.clone() }.train(2);
        changing.train(1);
        assert_eq!(made::differing(&one.run, &changing.run), Vec::<String>::new(), "{name}, {cut}, changing");
        let mixed = calmix_train::inspect::events(&one.run).unwrap();
        let mixes = |event: &calmix_train::events::Event| matches!(event, calmix_train::events::Event::Step(step) if step.mixes.is_some());
        assert!(mixed.iter().filter(|event| mixes(event)).count() > 50, "{name}: the mixup is on");
    }
}

#[test]
fn fixmatch_has_the_same_bits_on_one_two_and_four_processes() {
    same_bits(0);
}

#[test]
fn flexmatch_has_the_same_bits_on_one_two_and_four_processes() {
    same_bits(1);
}

#[test]
fn softmatch_has_the_same_bits_on_one_two_and_four_processes() {
    same_bits(2);
}

/// Six parts on 1, 2, 3 and 6 processes: some of them run parts of two groups, and the tree is no power of two.
#[test]
fn awkward_numbers_have_the_same_bits_too() {
    let bench = made::Bench::new();
    let settings =
        ["train.groups=3", "train.shards=2", "train.batch=5", "train.ratio=3", "method.base=flexmatch"];
    let one = Crew::new(&bench, "one", &settings);
    one.train(1);
    for size in [2, 3, 6] {
        let other = Crew::new(&bench, &format!("on-{size}"), &settings);
        other.train(size);
        assert_eq!(made::differing(&one.run, &other.run), Vec::<String>::new(), "{size} processes");
    }
}
