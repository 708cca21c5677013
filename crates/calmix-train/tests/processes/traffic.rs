//! What processes send: as many bytes as the formula says, however many samples there are, in as few collectives as can
//! be.

use std::fs;
use std::path::{Path, PathBuf};

use calmix_run::events::Collectives;
use calmix_run::events::{Exchange, Pace};
use calmix_run::run::Paths;
use calmix_testkit::png_file::{Pixels, png};
use calmix_train::trainer::StepTraffic;

use super::crew::Crew;
use crate::made;

const SETTINGS: [&str; 11] = [
    "dataset.source=folder",
    "dataset.test=",
    "labels.count=4",
    "labels.validation=0.25",
    "labels.keep=per-class",
    "train.batch=6",
    "train.ratio=3",
    "train.micro_batches=2",
    "train.steps=14",
    "evaluate.every=100",
    "checkpoint.every=100",
];

#[test]
fn traffic_matches_the_formula_for_any_dataset() {
    let temp = tempfile::tempdir().unwrap();
    for (classes, samples) in [(3, 60), (3, 600), (7, 60), (7, 600)] {
        for base in ["fixmatch", "flexmatch", "softmatch"] {
            let data = temp.path().join(format!("data-{classes}-{samples}"));
            images(&data, classes, samples);
            let base = format!("method.base={base}");
            let settings: Vec<&str> = SETTINGS.iter().copied().chain([base.as_str()]).collect();
            let run = temp.path().join(format!("run-{classes}-{samples}-{base}"));
            let exchanged = train(&data, &run, &settings, 2);

            let recipe = made::recipe(&data, &settings).recipe;
            let traffic = StepTraffic::new(&recipe, classes, 2);
            let mut all_views = 0;
            for (step, exchange) in exchanged {
                // What other processes mix of ours is known to the plan alone: whole images, at most one for each of
                // their labelled rows.
                let fixed = traffic.of_sum() + traffic.of_gather();
                let views = exchange.sent_bytes.checked_sub(fixed).unwrap() / traffic.of_views(1);
                assert_eq!(exchange.sent_bytes, fixed + traffic.of_views(views), "{base}, step {step}");
                assert!(views <= u64::from(recipe.train.batch) / 2, "{views} views in step {step}");
                all_views += views;
            }
            assert!(all_views > 0, "nothing was mixed with a row of the other process");
        }
    }
}

const ONE_GROUP: Collectives = Collectives { world_gathers: 1, sums: 1, group_gathers: 0, exchanges: 1 };

/// In every step one gather and one sum over all processes; in a group one gather and one all-to-all. With one group the
/// two gathers are one. The released code's second pass gathers once more.
#[test]
fn step_uses_the_fewest_collectives() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    images(&data, 3, 60);
    let two_groups: &[&str] = &["train.groups=2", "train.batch=8"];
    let released = &[
        "preset=released-code",
        "selection=last",
        "method.mixup.start.rule=share",
        "method.mixup.start.share=0.1",
        "train.precision=f32",
        "method.mixup.guidance.dissimilar=any",
    ];
    for (name, settings, processes, expected) in [
        ("one group", &[][..], 2, ONE_GROUP),
        ("two groups", two_groups, 4, Collectives { group_gathers: 1, ..ONE_GROUP }),
        ("two groups on two", two_groups, 2, Collectives { exchanges: 0, ..ONE_GROUP }),
        ("the released code", released, 2, Collectives { world_gathers: 2, ..ONE_GROUP }),
    ] {
        let settings = [&SETTINGS[..], settings].concat();
        for (step, exchange) in train(&data, &temp.path().join(name), &settings, processes) {
            assert_eq!(exchange.collectives, expected, "{name}, step {step}");
        }
    }
}

/// What the first process exchanged in each step with mixtures.
fn train(data: &Path, run: &Path, settings: &[&str], processes: usize) -> Vec<(u64, Exchange)> {
    let settings = settings.iter().map(ToString::to_string).collect();
    let crew = Crew { data: data.to_owned(), run: run.to_owned(), settings, until: None, fault: None };
    crew.train(processes);
    let lines = fs::read_to_string(Paths::new(run).timing()).unwrap();
    let paces = lines.lines().map(|line| serde_json::from_str::<Pace>(line).unwrap());
    // Mixing from the third step on; the first line has no line before it.
    let exchanged: Vec<_> =
        paces.map(|pace| (pace.step, pace.processes.unwrap())).filter(|(step, _)| *step > 4).collect();
    assert_eq!(exchanged.len(), 10);
    exchanged
}

/// A folder for each class.
fn images(data: &Path, classes: usize, samples: usize) {
    for sample in 0..samples {
        let class: PathBuf = data.join("train").join(format!("class-{}", sample % classes));
        fs::create_dir_all(&class).unwrap();
        let pixel = |place| (37 * (sample % classes) + place + sample % 5) as u8;
        fs::write(class.join(format!("{sample}.png")), png(Pixels::Grey, [8, 8], pixel)).unwrap();
    }
}
