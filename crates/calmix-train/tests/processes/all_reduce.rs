//! Gradients that are added up by all-reduce: the same experiment as along the tree, with other last bits.

use std::path::Path;

use super::crew::Crew;
use crate::made;

const STEPS: usize = 20;
const SETTINGS: [&str; 10] = [
    // Small, so that the difference in the last bits does not grow within the steps to that of another run.
    "optimiser.lr=0.003",
    "method.base=softmatch",
    "method.mixup.start.rule=step",
    "method.mixup.start.step=5",
    "train.batch=8",
    "train.steps=20",
    "train.micro_batches=4",
    "labels.count=2",
    "labels.validation=0",
    "log.every=1",
];
/// How far losses may be from those along the tree.
const CLOSE: f64 = 1e-3;

/// The total loss of each step.
fn losses(run: &Path) -> Vec<f64> {
    made::steps(run).iter().map(|step| f64::from(step.loss.total)).collect()
}

#[test]
fn all_reduce_trains_as_the_tree_does() {
    let bench = made::Bench::new();
    let train = |sum: &str, size: usize| {
        let sum_setting = format!("train.sum={sum}");
        let settings = [&SETTINGS[..], &[&sum_setting]].concat();
        let crew = Crew::new(&bench, &format!("{sum}-on-{size}"), &settings);
        crew.train(size);
        losses(&crew.run)
    };
    let tree = train("tree", 1);
    assert_eq!(tree.len(), STEPS);
    assert_eq!(train("all-reduce", 1), tree, "alone there is nothing to add up");
    for size in [2, 4] {
        let all_reduce = train("all-reduce", size);
        let far = tree.iter().zip(&all_reduce).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(all_reduce.len() == STEPS && far <= CLOSE, "{size} processes: {far}");
        eprintln!("{size} processes: losses within {far:e}");
    }
}
