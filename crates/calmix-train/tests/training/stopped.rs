//! A run that was stopped ends as one that was not.

use std::sync::atomic::AtomicBool;

use calmix_train::trainer::{Outcome, Trainer};

use crate::made::{Bench, Notes, differing, resume};

#[test]
fn every_method_goes_on_to_the_same_bits() {
    let bench = Bench::new();
    for (name, settings) in [
        ("supervised", &["method.base=supervised"][..]),
        (
            "pseudo-mixup",
            &["method.base=supervised-pseudo-mixup", "method.mixup.guidance.averaging=exponential"],
        ),
        (
            "freematch",
            &["method.base=freematch", "method.mixup.pairing=all", "method.logit_penalty.weight=0.1"],
        ),
        ("fixmatch", &["method.base=fixmatch", "method.fixmatch.threshold=0.2"]),
        ("flexmatch", &["method.base=flexmatch", "method.flexmatch.threshold=0.2", "evaluate.online=true"]),
        ("softmatch", &["method.base=softmatch", "selection=best-validation"]),
        ("running", &["method.base=softmatch", "method.mixup.guidance.split=running", "train.step=lean"]),
        (
            "ready",
            &[
                "method.base=fixmatch",
                "method.mixup.start.rule=utilisation",
                "method.mixup.start.level=0.01",
                "method.fixmatch.threshold=0.2",
                "selection=median",
            ],
        ),
        ("released", &["preset=released-code", "method.mixup.start.step=3", "train.precision=bf16"]),
    ] {
        let whole = bench.train(&format!("{name}-whole"), settings);
        for stop in [1, 5, 7] {
            let folder = bench.train_until(&format!("{name}-{stop}"), stop, settings);
            assert!(matches!(resume(&folder).unwrap(), Outcome::Finished(_)));
            assert_eq!(differing(&whole, &folder), Vec::<String>::new(), "{name}, stopped at {stop}");
        }
    }
}

#[test]
fn a_run_may_be_stopped_at_every_step() {
    let bench = Bench::new();
    let settings = ["method.base=flexmatch", "method.flexmatch.threshold=0.2"];
    let whole = bench.train("whole", &settings);
    let folder = bench.train_until("stopped", 1, &settings);
    // Told to stop before it begins, it has nothing to do, and says where it is.
    let stopped = Trainer::new(&AtomicBool::new(true)).resume(&folder, None).unwrap();
    assert_eq!(stopped, Outcome::Stopped { step: 1 });
    for step in 2..12 {
        let stop = AtomicBool::new(false);
        let trainer = crate::made::stopping(Trainer::new(&stop), step, &stop);
        assert_eq!(trainer.resume(&folder, None).unwrap(), Outcome::Stopped { step });
    }
    assert!(matches!(resume(&folder).unwrap(), Outcome::Finished(_)));
    assert_eq!(differing(&whole, &folder), Vec::<String>::new());
    // It says that it is finished, and changes nothing.
    let Outcome::AlreadyFinished(finished) = resume(&folder).unwrap() else { panic!("not finished") };
    assert_eq!(finished.step, 12);
    assert_eq!(differing(&whole, &folder), Vec::<String>::new());
}

#[test]
fn other_threads_may_go_on_and_are_warned_of_other_bits() {
    let bench = Bench::new();
    let said = |folder: &std::path::Path, threads: &str| {
        let mut notes = Vec::new();
        let settings = bench.recipe(&[threads]);
        Trainer::new(&AtomicBool::new(false))
            .tell(Notes(&mut notes))
            .resume(folder, Some(&settings))
            .unwrap();
        notes
    };
    let same = bench.train_until("same", 3, &[]);
    assert_eq!(said(&same, "train.threads=1"), Vec::<String>::new());
    let other = bench.train_until("other", 3, &[]);
    assert_eq!(
        said(&other, "train.threads=2"),
        ["the device or the number of threads is another than before"]
    );
}
