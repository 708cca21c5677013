//! Every method with every kind of step, cut into groups and micro-batches, on several processes: the same bits.
//!
//! All combinations are 4 methods × 3 kinds × 2 cuts × 3 numbers of processes, 72 runs. The usual tier trains 28 of them, in
//! which each two values of different factors meet; `CALMIX_EXHAUSTIVE=1` trains all.

use std::collections::BTreeSet;

use calmix_testkit::{run_bytes, tier};

use super::crew::Crew;
use super::{CUTS, METHODS, made};

const KINDS: [&str; 3] = ["train.step=concat", "train.step=joint", "train.step=lean"];

/// Runs that are compared with each other: the same settings on several numbers of processes.
#[derive(Debug, Clone, Copy)]
struct Comparison {
    method: usize,
    kind: usize,
    cut: usize,
    /// Processes of the runs; the first is the one that the others are compared with.
    processes: &'static [usize],
}

const fn comparison(method: usize, kind: usize, cut: usize, processes: &'static [usize]) -> Comparison {
    Comparison { method, kind, cut, processes }
}

/// Every method with every kind; the cuts alternate, and each row of the table has a run on two processes.
const ALL_PAIRS: [Comparison; 12] = [
    comparison(0, 0, 0, &[1, 4]),
    comparison(0, 1, 1, &[1, 2, 4]),
    comparison(0, 2, 0, &[1, 4]),
    comparison(1, 0, 1, &[1, 4]),
    comparison(1, 1, 0, &[1, 4]),
    comparison(1, 2, 1, &[1, 2, 4]),
    comparison(2, 0, 0, &[1, 2, 4]),
    comparison(2, 1, 1, &[1, 4]),
    comparison(2, 2, 0, &[1, 4]),
    comparison(3, 0, 1, &[1, 4]),
    comparison(3, 1, 0, &[1, 2, 4]),
    comparison(3, 2, 1, &[1, 4]),
];

fn all_combinations() -> Vec<Comparison> {
    let kinds = (0..METHODS.len()).flat_map(|method| (0..KINDS.len()).map(move |kind| (method, kind)));
    let cuts = kinds.flat_map(|(method, kind)| (0..CUTS.len()).map(move |cut| (method, kind, cut)));
    cuts.map(|(method, kind, cut)| comparison(method, kind, cut, &[1, 2, 4])).collect()
}

/// Each two values of different factors that meet in a run.
fn pairs(comparisons: &[Comparison]) -> BTreeSet<[(&'static str, usize); 2]> {
    let runs = comparisons.iter().flat_map(|it| {
        let settings = [("method", it.method), ("kind", it.kind), ("cut", it.cut)];
        it.processes.iter().map(move |&processes| [&settings[..], &[("processes", processes)]].concat())
    });
    let pairs = runs.flat_map(|run| {
        let ordered = (0..run.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
        ordered.map(|(a, b)| [run[a], run[b]]).collect::<Vec<_>>()
    });
    pairs.collect()
}

#[test]
fn usual_runs_cover_all_pairs() {
    // 4·3 + 4·2 + 3·2 pairs of settings, and 3 numbers of processes with each of 4 + 3 + 2 settings.
    let all = pairs(&all_combinations());
    assert_eq!(all.len(), 12 + 8 + 6 + 3 * 9);
    assert_eq!(pairs(&ALL_PAIRS), all);
    assert_eq!(ALL_PAIRS.iter().map(|it| it.processes.len()).sum::<usize>(), 28);
}

/// Shorter than the runs of a single method. The number of unlabelled samples is not a multiple of the micro-batches.
#[test]
fn every_kind_of_step_has_the_same_bits() {
    let bench = made::Bench::new();
    let short = ["train.batch=8", "train.steps=20", "labels.count=1", "labels.validation=0"];
    let comparisons = if tier::is_exhaustive() { all_combinations() } else { ALL_PAIRS.to_vec() };
    for comparison in comparisons {
        let (name, method) = METHODS[comparison.method];
        let kind = KINDS[comparison.kind];
        let (cut, micro_batches) = CUTS[comparison.cut];
        let settings = [method, &[kind, "labels.include_labelled=false"], &micro_batches, &short].concat();
        let train = |size: usize| {
            let crew = Crew::new(&bench, &format!("{name}-{kind}-{cut}-on-{size}"), &settings);
            crew.train(size);
            crew.run
        };
        let runs: Vec<_> = comparison.processes.iter().map(|&size| (size, train(size))).collect();
        let (_, first) = &runs[0];
        for (size, run) in &runs[1..] {
            let differing = run_bytes::differing(first, run);
            assert_eq!(differing, Vec::<String>::new(), "{name}, {kind}, {cut}, {size} processes");
        }
        // 120 samples less ten labelled ones.
        let samples: usize = (0..4).map(|micro_batch| samples(first, 20, micro_batch)).sum();
        assert_eq!((samples, samples % 4), (110, 2));
    }
}

/// How many samples per micro-batch has the state of in a checkpoint.
fn samples(run: &std::path::Path, step: u64, micro_batch: usize) -> usize {
    let file = made::checkpoint(run, step).join(format!("samples-{micro_batch}.safetensors"));
    let bytes = std::fs::read(file).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    tensors.tensor("apm.visits").unwrap().shape()[0]
}
