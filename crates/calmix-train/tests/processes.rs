//! One run on one, two and four processes: the same bits, whoever runs what.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // in the functions that the tests share
#![allow(clippy::print_stderr, clippy::print_stdout)] // what a process says to the test that started it

#[path = "processes/crew.rs"]
mod crew;
#[path = "processes/faults.rs"]
mod faults;
#[path = "../../calmix-dist/tests/processes/hosts.rs"]
mod hosts;
#[allow(dead_code)]
#[path = "training/made.rs"]
mod made;
#[path = "processes/torchrun.rs"]
mod torchrun;
#[path = "processes/traffic.rs"]
mod traffic;
#[path = "processes/two_nodes.rs"]
mod two_nodes;

use crew::Crew;

/// What a process is: not a test, but what the tests below start.
#[test]
#[ignore = "the other tests of this file run it, in processes of its own"]
fn one_of_them() {
    crew::one_of_them();
}

const METHODS: [(&str, &[&str]); 4] = [
    ("fixmatch", &["method.base=fixmatch", "method.fixmatch.threshold=0.2", "train.step=joint"]),
    ("flexmatch", &["method.base=flexmatch", "method.flexmatch.threshold=0.2", "train.step=lean"]),
    (
        "softmatch",
        &[
            "method.base=softmatch",
            "method.mixup.start.rule=utilisation",
            "method.mixup.start.level=0.1",
            "train.step=concat",
        ],
    ),
    (
        "freematch",
        &[
            "method.base=freematch",
            "method.freematch.fairness=0.1",
            "method.logit_penalty.weight=0.1",
            "method.logit_penalty.margin=0.5",
            "method.mixup.pseudo_target=blended",
            "train.step=lean",
        ],
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
        let mixed = calmix_run::read::events(&one.run).unwrap();
        let mixes = |event: &calmix_run::events::Event| matches!(event, calmix_run::events::Event::Step(step) if step.mixes.is_some());
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

#[test]
fn freematch_has_the_same_bits_on_one_two_and_four_processes() {
    same_bits(3);
}

/// Six shards on 1, 2, 3 and 6 processes: some of them run shards of two groups, and the tree is no power of two.
#[test]
fn awkward_numbers_have_the_same_bits_too() {
    let bench = made::Bench::new();
    let settings =
        ["train.groups=3", "train.shards=2", "train.batch=6", "train.ratio=3", "method.base=flexmatch"];
    let one = Crew::new(&bench, "one", &settings);
    one.train(1);
    for size in [2, 3, 6] {
        let other = Crew::new(&bench, &format!("on-{size}"), &settings);
        other.train(size);
        assert_eq!(made::differing(&one.run, &other.run), Vec::<String>::new(), "{size} processes");
    }
}

/// Every method with every kind of step, shorter than above. The unlabelled samples are no multiple of the shards.
#[test]
fn every_kind_of_step_has_the_same_bits() {
    let bench = made::Bench::new();
    let short = ["train.batch=8", "train.steps=20", "labels.count=1", "labels.validation=0"];
    for (name, method) in METHODS {
        for kind in ["train.step=concat", "train.step=joint", "train.step=lean"] {
            for (cut, shards) in CUTS {
                let settings = [method, &[kind, "labels.include_labelled=false"], &shards, &short].concat();
                let crew = |run: &str| Crew::new(&bench, &format!("{name}-{kind}-{cut}-{run}"), &settings);
                let one = crew("one");
                one.train(1);
                for (run, size) in [("two", 2), ("four", 4)] {
                    let other = crew(run);
                    other.train(size);
                    let differing = made::differing(&one.run, &other.run);
                    assert_eq!(differing, Vec::<String>::new(), "{name}, {kind}, {cut}, {size} processes");
                }
                // 120 samples less ten labelled ones.
                let samples: usize = (0..4).map(|shard| samples(&one.run, 20, shard)).sum();
                assert_eq!((samples, samples % 4), (110, 2));
            }
        }
    }
}

/// How many samples a shard has the state of in a checkpoint.
fn samples(run: &std::path::Path, step: u64, shard: usize) -> usize {
    let file = made::checkpoint(run, step).join(format!("samples-{shard}.safetensors"));
    let bytes = std::fs::read(file).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    tensors.tensor("apm.visits").unwrap().shape()[0]
}

/// The released code labels every batch twice: its second pass is gathered too.
#[test]
fn the_released_code_has_the_same_bits() {
    let bench = made::Bench::new();
    let settings = [
        "preset=released-code",
        "selection=last",
        "method.mixup.start.rule=share",
        "train.precision=f32",
        "train.shards=2",
        "train.batch=8",
    ];
    let one = Crew::new(&bench, "one", &settings);
    one.train(1);
    let two = Crew::new(&bench, "two", &settings);
    two.train(2);
    assert_eq!(made::differing(&one.run, &two.run), Vec::<String>::new());
    let events = calmix_run::read::events(&one.run).unwrap();
    let mixes = |event: &&calmix_run::events::Event| matches!(event, calmix_run::events::Event::Step(step) if step.mixes.is_some());
    assert!(events.iter().filter(mixes).count() > 5, "the mixup is on");
}
