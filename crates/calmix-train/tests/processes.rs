//! One run on one, two, three and four processes: the same bits, whichever process runs which micro-batches.

mod all_reduce;
mod crew;
mod faults;
mod step_kinds;
mod torchrun;
mod traffic;
mod two_nodes;

use crate::made;
use calmix_testkit::tier;

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
    ("one-group", ["train.groups=1", "train.micro_batches=4"]),
    ("two-groups", ["train.groups=2", "train.micro_batches=2"]),
];

/// Training of one method with CalibrateMix: evaluations, checkpoints and stops come after different steps.
struct Plan {
    steps: usize,
    settings: [&'static str; 5],
    stops: [u64; 2],
}

const USUAL: Plan = Plan {
    steps: 40,
    settings: [
        "train.steps=40",
        "train.batch=8",
        "evaluate.every=15",
        "checkpoint.every=10",
        "evaluate.batch=7",
    ],
    stops: [14, 27],
};

const EXHAUSTIVE: Plan = Plan {
    steps: 100,
    settings: [
        "train.steps=100",
        "train.batch=8",
        "evaluate.every=30",
        "checkpoint.every=25",
        "evaluate.batch=7",
    ],
    stops: [34, 67],
};

fn same_bits(method: usize) {
    let bench = made::Bench::new();
    let (name, settings) = METHODS[method];
    let plan = if tier::is_exhaustive() { EXHAUSTIVE } else { USUAL };
    for (cut, parts) in CUTS {
        let settings = [settings, &parts, &plan.settings].concat();
        let crew = |run: &str| Crew::new(&bench, &format!("{name}-{cut}-{run}"), &settings);
        let one = crew("one");
        one.train(1);
        // A run on two is among `every_kind_of_step_has_the_same_bits`, and one on three among the changing ones.
        let sizes: &[usize] = if tier::is_exhaustive() { &[2, 3, 4] } else { &[4] };
        for &size in sizes {
            let other = crew(&format!("on-{size}"));
            other.train(size);
            made::assert_same(&one.run, &other.run, &format!("{name}, {cut}, {size} processes"));
        }
        // Stopped on four, resumed on three, as after the loss of a node, finished on one.
        let changing = crew("changing");
        Crew { until: Some(plan.stops[0]), ..changing.clone() }.train(4);
        Crew { until: Some(plan.stops[1]), ..changing.clone() }.train(3);
        changing.train(1);
        made::assert_same(&one.run, &changing.run, &format!("{name}, {cut}, changing"));
        let mixed = made::mixed_steps(&one.run);
        assert!(mixed > plan.steps / 2, "{name}: the mixup is on in {mixed} steps");
    }
}

#[test]
fn fixmatch_has_the_same_bits_on_one_to_four_processes() {
    same_bits(0);
}

#[test]
fn flexmatch_has_the_same_bits_on_one_to_four_processes() {
    same_bits(1);
}

#[test]
fn softmatch_has_the_same_bits_on_one_to_four_processes() {
    same_bits(2);
}

#[test]
fn freematch_has_the_same_bits_on_one_to_four_processes() {
    same_bits(3);
}

/// Six micro-batches on 1, 2, 3 and 6 processes: some of them run micro-batches of two groups, and the tree is not a power of two.
#[test]
fn uneven_sizes_have_the_same_bits_too() {
    let bench = made::Bench::new();
    let settings = [
        "train.groups=3",
        "train.micro_batches=2",
        "train.batch=6",
        "train.ratio=3",
        "method.base=flexmatch",
    ];
    let one = Crew::new(&bench, "one", &settings);
    one.train(1);
    for size in [2, 3, 6] {
        let other = Crew::new(&bench, &format!("on-{size}"), &settings);
        other.train(size);
        made::assert_same(&one.run, &other.run, &format!("{size} processes"));
    }
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
        "train.micro_batches=2",
        "train.batch=8",
    ];
    let one = Crew::new(&bench, "one", &settings);
    one.train(1);
    let two = Crew::new(&bench, "two", &settings);
    two.train(2);
    made::assert_same(&one.run, &two.run, "two processes");
    assert!(made::mixed_steps(&one.run) > 5, "the mixup is on");
}
