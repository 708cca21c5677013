//! How long a step of a head takes at the sizes of the recipe `head-cifar10`: 256 dimensions, ten classes, 16 labelled and
//! 112 unlabelled rows, SoftMatch with CalibrateMix. `cargo run --release -p calmix-head --example step_time`
#![allow(clippy::print_stdout)]

use std::time::Instant;

use calmix_core::matrix::Matrix;
use calmix_core::preset;
use calmix_core::pseudo::{Base, SoftMatch};
use calmix_core::rng::{Domain, Seed};
use calmix_core::schedule::{LearningRate, Start};
use calmix_head::HeadError;
use calmix_head::samples::{HeadSamples, TrainingRows};
use calmix_head::settings::{Candidates, HeadSettings};
use calmix_head::training::Training;

const SAMPLES: usize = 10_000;
const WIDTH: usize = 256;
const VIEWS: usize = 5;
const CLASSES: usize = 10;
const STEPS: u64 = 1_000;
const ROUNDS: usize = 5;

fn main() -> Result<(), HeadError> {
    let mut stream = Seed(1).stream(Domain::Init, 0, 0);
    let numbers: Vec<f32> =
        (0..SAMPLES * VIEWS * WIDTH).map(|_| (stream.uniform() - 0.5) as f32 / 5.0).collect();
    let ids: Vec<u64> = (0..SAMPLES as u64).collect();
    let labels: Vec<Option<u32>> = (0..SAMPLES).map(|sample| Some((sample % CLASSES) as u32)).collect();
    let classes: Vec<String> = (0..CLASSES).map(|class| class.to_string()).collect();
    let vectors =
        Matrix::new(&numbers, SAMPLES, VIEWS * WIDTH).map_err(|error| HeadError::Input(error.to_string()))?;
    let samples = HeadSamples {
        ids: &ids,
        vectors: vectors.into(),
        weak: 2,
        strong: 2,
        labels: &labels,
        classes: &classes,
        groups: &[],
        chosen: &[],
        weights: &[],
    };
    let rows = TrainingRows { labelled: (0..250).collect(), unlabelled: (0..SAMPLES).collect() };
    let mut method = preset::paper(Base::SoftMatch(SoftMatch::default()));
    method.mixup.start = Start::at(0);
    for hidden in [None, Some(256)] {
        let settings = HeadSettings {
            method,
            hidden,
            steps: STEPS,
            batch: 16,
            unlabelled_batch: 112,
            lr: 3.0,
            schedule: LearningRate::Cosine,
            momentum: 0.9,
            nesterov: true,
            weight_decay: 0.0,
            clip: None,
            ema_decay: 0.99,
            folds: 0,
            candidates: Candidates::Method,
            labels_alone: false,
            neighbours: false,
            log_every: 0,
            seed: Seed(1),
        };
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let mut training = Training::new(samples, &rows, &settings)?;
            let start = Instant::now();
            for step in 0..STEPS {
                training.step(step)?;
            }
            times.push(start.elapsed().as_secs_f64() * 1e3 / STEPS as f64);
        }
        times.sort_by(f64::total_cmp);
        let name = hidden.map_or("linear".to_owned(), |units| format!("{units} hidden units"));
        println!("{name}: {:.3} ms per step (median of {ROUNDS} rounds of {STEPS})", times[ROUNDS / 2]);
    }
    Ok(())
}
