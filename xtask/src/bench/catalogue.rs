//! The benchmarks. To add one, add an entry here, a module in `bench/src`, and for a comparison a script in `bench/peers`.

mod measures;

use super::measurement::Unit;
use crate::setup::venv::{NUMPY, PYTORCH, TORCH};
use measures::MEASURES;

/// A group of cases with a common table.
pub(crate) struct Bench {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) cases: &'static [Case],
}

/// A case, which is measured in one run, with its sides taking turns.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) sides: Sides,
    pub(crate) unit: Unit,
    /// Files that all sides of calmix read, and those peers whose files a script makes or that belong to a pair. Their folder is
    /// the last argument.
    pub(crate) files: Option<Files>,
    /// A feature of calmix beyond the defaults.
    pub(crate) extra: Option<Extra>,
}

/// The sides of a case.
pub(crate) enum Sides {
    /// Calmix and optionally a peer with the same arguments: a line of the table.
    Pair { arguments: &'static [&'static str], peer: Option<Peer> },
    /// Any number of programs, and the ratios they should reach: a table of its own.
    Named { sides: &'static [Side], wanted: &'static [Wanted] },
}

/// A program with its arguments.
pub(crate) struct Side {
    pub(crate) name: &'static str,
    pub(crate) program: Program,
    pub(crate) arguments: &'static [&'static str],
}

pub(crate) enum Program {
    Ours,
    Peer(Peer),
}

/// The ratio that one side should reach against another.
pub(crate) struct Wanted {
    pub(crate) side: &'static str,
    pub(crate) against: &'static str,
    pub(crate) ratio: Ratio,
}

/// The measure of a comparison, with its limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ratio {
    /// The speed relative to the other side: at least this.
    Speed(f64),
    /// The time relative to the other side: at most this.
    Time(f64),
    /// The memory relative to the other side: at most this.
    Memory(f64),
}

/// A Python script that speaks the protocol.
#[derive(Clone, Copy)]
pub(crate) struct Peer {
    /// The path below the root of the repository.
    pub(crate) script: &'static str,
    /// The required packages, as `name==version`.
    pub(crate) packages: &'static [&'static str],
}

/// A folder of files: a dataset if available, or else the output of a script.
pub(crate) struct Files {
    /// The path below `$CALMIX_DATASETS`; empty for none.
    pub(crate) dataset: &'static str,
    /// The script to run if the dataset is missing; `None` to skip the case then.
    pub(crate) made: Option<Made>,
}

/// Files made by a script.
pub(crate) struct Made {
    /// The script, whose first argument is the folder.
    pub(crate) script: Peer,
    /// The further arguments of the script, which also name the folder in the cache.
    pub(crate) arguments: &'static [&'static str],
}

/// A feature of calmix that not every machine can build.
pub(crate) struct Extra {
    pub(crate) feature: &'static str,
    /// The programs that are needed to build it. If one is missing, the case is skipped.
    pub(crate) programs: &'static [&'static str],
}

/// torchvision, and the packages that its transforms of Pillow images need.
const TORCHVISION: &[&str] = &[TORCH, "torchvision==0.28.0", "pillow==13.0.0", NUMPY];

pub(crate) const BENCHES: &[Bench] =
    &[PLAN, DATA, ORDER, MEASURES, STEP, PREDICT, PHOTOS_PREDICTED, FEATURES, MICRO_BATCHES, PROCESSES];

const PLAN: Bench = Bench {
    name: "plan",
    what: "one plan (Algorithm 1) for a batch of 64 + 448, against NumPy, one thread each",
    cases: &[
        plan("FixMatch, C = 100, D = 512", &["fixmatch", "100", "512"]),
        plan("FlexMatch, C = 100, D = 512", &["flexmatch", "100", "512"]),
        plan("SoftMatch, C = 100, D = 512", &["softmatch", "100", "512"]),
        plan("FixMatch, C = 1000, D = 2048", &["fixmatch", "1000", "2048"]),
        plan("FlexMatch, C = 1000, D = 2048", &["flexmatch", "1000", "2048"]),
        plan("SoftMatch, C = 1000, D = 2048", &["softmatch", "1000", "2048"]),
    ],
};

const fn plan(name: &'static str, arguments: &'static [&'static str]) -> Case {
    let peer = Some(Peer { script: "bench/peers/plan.py", packages: &[NUMPY] });
    // The number of plans per repetition in bench/src/plan.rs and bench/peers/plan.py.
    let unit = Unit::Milliseconds { per_repetition: 20.0 };
    Case { name, sides: Sides::Pair { arguments, peer }, unit, files: None, extra: None }
}

const DATA: Bench = Bench {
    name: "data",
    what: "a weak and a strong view (USB) of an image, against torchvision and Pillow, one thread each",
    cases: &[
        pairs("32×32, decoded", &["decoded", "32", "512"], 512.0, made(&["32", "32", "png"]), None),
        pairs("64×64, JPEG", &["jpeg", "64", "256"], 256.0, TINY, None),
        pairs("500×375, JPEG", &["jpeg", "224", "32"], 32.0, PHOTOS, None),
        pairs("64×64, JPEG, feature turbo", &["jpeg", "64", "256"], 256.0, TINY, Some(TURBO)),
        pairs("500×375, JPEG, feature turbo", &["jpeg", "224", "32"], 32.0, PHOTOS, Some(TURBO)),
    ],
};

/// Images of 64×64 pixels; ten classes are enough.
const TINY: Files = Files { dataset: "tiny-imagenet-10", ..made(&["64", "64", "jpg"]) };
const PHOTOS: Files = made(&["500", "375", "jpg"]);
const CIFAR10: Files = Files { dataset: "cifar10", made: None };
const ENGINE: Extra = Extra { feature: "engine", programs: &[] };
const TURBO: Extra = Extra { feature: "turbo", programs: &["cmake", "nasm"] };

const fn made(arguments: &'static [&'static str]) -> Files {
    let script = Peer { script: "bench/peers/photos.py", packages: TORCHVISION };
    Files { dataset: "", made: Some(Made { script, arguments }) }
}

const fn pairs(
    name: &'static str,
    arguments: &'static [&'static str],
    per_repetition: f64,
    files: Files,
    extra: Option<Extra>,
) -> Case {
    let peer = Some(Peer { script: "bench/peers/data.py", packages: TORCHVISION });
    let unit = Unit::Rate { name: "pairs/s", per_repetition };
    Case { name, sides: Sides::Pair { arguments, peer }, unit, files: Some(files), extra }
}

const ORDER: Bench = Bench {
    name: "order",
    what: "lookup of the sample at a position of a stream of a billion, one thread",
    cases: &[
        positions("each on its own", &["at", "1000000000", "100000"]),
        positions("through a cursor", &["cursor", "1000000000", "100000"]),
    ],
};

const fn positions(name: &'static str, arguments: &'static [&'static str]) -> Case {
    let unit = Unit::Rate { name: "positions/s", per_repetition: 1e5 };
    Case { name, sides: Sides::Pair { arguments, peer: None }, unit, files: None, extra: None }
}

const STEP: Bench = Bench {
    name: "step",
    what: "training steps of SoftMatch with CalibrateMix, WRN-28-2, B = 16, μ = 7, bf16, two threads each",
    cases: &[Case {
        name: "CIFAR-10",
        sides: Sides::Named {
            sides: &[
                engine("concat", &["whole", "concat"]),
                engine("joint", &["whole", "joint"]),
                engine("lean", &["whole", "lean"]),
                engine("bare joint", &["bare", "joint"]),
                engine("bare lean", &["bare", "lean"]),
                pytorch("PyTorch released", &["released"]),
                pytorch("PyTorch concat", &["concat"]),
                pytorch("PyTorch joint", &["joint"]),
                pytorch("PyTorch lean", &["lean"]),
            ],
            wanted: &[
                wanted("joint", "bare joint", Ratio::Speed(0.93)),
                wanted("lean", "bare lean", Ratio::Speed(0.93)),
                wanted("concat", "PyTorch concat", Ratio::Speed(1.25)),
                wanted("joint", "PyTorch joint", Ratio::Speed(1.25)),
                wanted("lean", "joint", Ratio::Speed(1.3)),
                wanted("lean", "PyTorch released", Ratio::Speed(3.0)),
                wanted("lean", "PyTorch lean", Ratio::Memory(1.0)),
            ],
        },
        // The number of steps per repetition in bench/src/step.rs and bench/peers/step.py.
        unit: Unit::Milliseconds { per_repetition: 4.0 },
        files: Some(CIFAR10),
        extra: Some(ENGINE),
    }],
};

const PREDICT: Bench = Bench {
    name: "predict",
    what: "predictions of images of 32×32 from their files, against the network alone on the same decoded pixels; \
           WRN-28-2, f32, two threads",
    cases: &[Case {
        name: "32×32, PNG",
        sides: Sides::Named {
            sides: &[engine("files", &["files", "512"]), engine("network alone", &["views", "512"])],
            wanted: &[wanted("files", "network alone", Ratio::Speed(0.9))],
        },
        unit: Unit::Rate { name: "images/s", per_repetition: 512.0 },
        files: Some(made(&["32", "32", "png"])),
        extra: Some(ENGINE),
    }],
};

const PHOTOS_PREDICTED: Bench = Bench {
    name: "photos",
    what: "predictions of photos from their files, against a script of PyTorch and Pillow with two workers; WRN-28-2 at \
           32×32, f32, two threads each",
    cases: &[
        photos("500×375, decoded whole", &["files", "256"], ENGINE),
        photos(
            "500×375, decoded to a fraction",
            &["scaled", "256"],
            Extra { feature: "engine,turbo", ..TURBO },
        ),
    ],
};

const fn photos(name: &'static str, arguments: &'static [&'static str], extra: Extra) -> Case {
    let peer = Some(Peer { script: "bench/peers/predict.py", packages: TORCHVISION });
    let unit = Unit::Rate { name: "images/s", per_repetition: 256.0 };
    Case { name, sides: Sides::Pair { arguments, peer }, unit, files: Some(PHOTOS), extra: Some(extra) }
}

const FEATURES: Bench = Bench {
    name: "features",
    what: "five views of images of 32×32 through a frozen EfficientNet-Lite0 at 160×160 into a cache, against the backbone \
           alone on images in memory; bf16, two threads",
    cases: &[Case {
        name: "CIFAR-10",
        sides: Sides::Named {
            sides: &[engine("cache", &["cache"]), engine("backbone alone", &["backbone"])],
            wanted: &[wanted("cache", "backbone alone", Ratio::Speed(0.9))],
        },
        // The number of views per repetition in bench/src/features.rs.
        unit: Unit::Rate { name: "views/s", per_repetition: 640.0 },
        files: Some(CIFAR10),
        extra: Some(ENGINE),
    }],
};

const MICRO_BATCHES: Bench = Bench {
    name: "micro-batches",
    what: "eight micro-batches of 16 + 112 rows on one process, in eight steps of one micro-batch or in one step of eight; WRN-28-2, \
           bf16, two threads, the engine alone",
    cases: &[Case {
        name: "made-up pixels",
        sides: Sides::Named {
            sides: &[
                engine("concat, 1 micro-batch", &["concat", "1"]),
                engine("concat, 8 micro-batches", &["concat", "8"]),
                engine("joint, 1 micro-batch", &["joint", "1"]),
                engine("joint, 8 micro-batches", &["joint", "8"]),
                engine("lean, 1 micro-batch", &["lean", "1"]),
                engine("lean, 8 micro-batches", &["lean", "8"]),
            ],
            wanted: &[
                wanted("concat, 8 micro-batches", "concat, 1 micro-batch", Ratio::Memory(1.3)),
                wanted("lean, 8 micro-batches", "lean, 1 micro-batch", Ratio::Memory(1.3)),
                wanted("joint, 8 micro-batches", "joint, 1 micro-batch", Ratio::Memory(1.3)),
                wanted("joint, 8 micro-batches", "joint, 1 micro-batch", Ratio::Time(1.4)),
            ],
        },
        unit: Unit::Milliseconds { per_repetition: 8.0 },
        files: None,
        extra: Some(ENGINE),
    }],
};

const PROCESSES: Bench = Bench {
    name: "processes",
    what: "a run of FixMatch with CalibrateMix in two micro-batches, WRN-28-2, B = 16, μ = 7, bf16, lean, on two cores; what \
           the first process sends in a step beside 2·(W−1)/W·4 bytes per number and O(batch) (`StepTraffic`)",
    cases: &[Case {
        name: "CIFAR-10",
        sides: Sides::Named {
            sides: &[
                engine("1 process, 1 thread", &["1", "1"]),
                engine("1 process, 2 threads", &["1", "2"]),
                engine("2 processes, 1 thread", &["2", "1"]),
            ],
            wanted: &[wanted("2 processes, 1 thread", "1 process, 2 threads", Ratio::Time(1.15))],
        },
        // The number of steps per repetition in bench/src/processes.rs.
        unit: Unit::Milliseconds { per_repetition: 2.0 },
        files: Some(CIFAR10),
        extra: Some(ENGINE),
    }],
};

const fn engine(name: &'static str, arguments: &'static [&'static str]) -> Side {
    Side { name, program: Program::Ours, arguments }
}

const fn pytorch(name: &'static str, arguments: &'static [&'static str]) -> Side {
    Side {
        name,
        program: Program::Peer(Peer { script: "bench/peers/step.py", packages: PYTORCH }),
        arguments,
    }
}

const fn wanted(side: &'static str, against: &'static str, ratio: Ratio) -> Wanted {
    Wanted { side, against, ratio }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wanted_ratios_name_existing_sides() {
        for case in BENCHES.iter().flat_map(|bench| bench.cases) {
            let Sides::Named { sides, wanted } = &case.sides else { continue };
            let names: Vec<_> = sides.iter().map(|side| side.name).collect();
            for line in *wanted {
                assert!(names.contains(&line.side) && names.contains(&line.against), "{}", case.name);
            }
        }
    }
}
