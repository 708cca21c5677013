//! What processes send: as many bytes as the formula says, however many samples there are.

use std::fs::{self, File};
use std::io::BufWriter;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};

use calmix_core::rng::{Domain, Seed};
use calmix_data::dataset::Dataset;
use calmix_data::loader::Members;
use calmix_data::order::{Feed, Order, Shard, Sharding};
use calmix_data::split::Split;
use calmix_train::events::Pace;
use calmix_train::run::{Paths, RunFile};
use calmix_train::trainer::{Away, StepTraffic};

use crate::crew::Crew;
use crate::made;

const SETTINGS: [&str; 11] = [
    "dataset.source=folder",
    "dataset.test=",
    "labels.count=4",
    "labels.validation=0.25",
    "labels.keep=per-class",
    "train.batch=6",
    "train.ratio=3",
    "train.shards=2",
    "train.steps=14",
    "evaluate.every=100",
    "checkpoint.every=100",
];

#[test]
fn two_processes_send_what_the_formula_says_whatever_the_size_of_the_dataset() {
    let temp = tempfile::tempdir().unwrap();
    for (classes, samples) in [(3, 60), (3, 600), (7, 60), (7, 600)] {
        let data = temp.path().join(format!("data-{classes}-{samples}"));
        pictures(&data, classes, samples);
        let run = temp.path().join(format!("run-{classes}-{samples}"));
        let settings = SETTINGS.iter().map(ToString::to_string).collect();
        let crew = Crew { data: data.clone(), run: run.clone(), settings, until: None, fault: None };
        crew.train(2);

        let recipe = made::recipe(&data, &SETTINGS).recipe;
        let traffic = StepTraffic::new(&recipe, classes, 2);
        let away = away(&run, &data, [recipe.train.batch, recipe.unlabelled()], Seed(recipe.train.seed));
        // Mixing from the third step on; the first line has no line before it.
        let sent: Vec<(u64, u64)> = sent(&run).into_iter().filter(|(step, _)| *step > 4).collect();
        assert_eq!(sent.len(), 10);
        for &(step, sent) in &sent {
            let expected = traffic.of_sum() + traffic.of_plan(away(step - 1));
            assert_eq!(sent, expected, "{classes} classes, {samples} samples, step {step}");
        }
    }
}

/// The rows of a step that are with one process while their samples belong to the other, as the first one sees them.
fn away(run: &Path, data: &Path, batches: [u32; 2], seed: Seed) -> impl Fn(u64) -> Away {
    let paths = Paths::new(run);
    let dataset = Dataset::open(&paths.prepared(), data).unwrap();
    let split = Split::read(&paths.file(RunFile::Split).unwrap(), &dataset).unwrap();
    let members: [Members; 2] = [split.labelled().into(), split.unlabelled(&dataset).unwrap().into()];
    let sharding = Sharding { groups: NonZeroU32::MIN, shards: NonZeroU32::new(2).unwrap() };
    move |step| {
        let rows = |stream: usize, index: u32, owner: u64| {
            let domain = [Domain::LabelledOrder, Domain::UnlabelledOrder][stream];
            let len = NonZeroU64::new(members[stream].len()).unwrap();
            let feed = Feed { order: Order { seed, domain, len }, batch: batches[stream], sharding };
            let visits = feed.shard(step, Shard { group: 0, index });
            // Sample `id` belongs to part `id mod 2`.
            visits.filter(|visit| members[stream].id(visit.index).unwrap() % 2 == owner).count() as u64
        };
        Away { asked: [rows(0, 0, 1), rows(1, 0, 1)], answered: [rows(0, 1, 0), rows(1, 1, 0)] }
    }
}

/// The bytes that the first process sent in each step.
fn sent(run: &Path) -> Vec<(u64, u64)> {
    let lines = fs::read_to_string(Paths::new(run).timing()).unwrap();
    let paces = lines.lines().map(|line| serde_json::from_str::<Pace>(line).unwrap());
    paces.map(|pace| (pace.step, pace.processes.unwrap().sent_bytes)).collect()
}

/// A folder for each class.
fn pictures(data: &Path, classes: usize, samples: usize) {
    for sample in 0..samples {
        let class: PathBuf = data.join("train").join(format!("class-{}", sample % classes));
        fs::create_dir_all(&class).unwrap();
        let file = BufWriter::new(File::create(class.join(format!("{sample}.png"))).unwrap());
        let mut encoder = png::Encoder::new(file, 8, 8);
        encoder.set_color(png::ColorType::Grayscale);
        let pixels: Vec<u8> = (0..64).map(|at| (37 * (sample % classes) + at + sample % 5) as u8).collect();
        encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
    }
}
