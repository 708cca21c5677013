//! What can be measured. A new bench is an entry here, a module in `bench/src`, and, where there is something
//! to compare with, a script in `bench/peers`.

use super::measurement::Unit;
use crate::setup::venv::{NUMPY, TORCH};

/// A family of cases that the same two programs run.
pub(crate) struct Bench {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) peer: Option<Peer>,
    pub(crate) cases: &'static [Case],
}

/// The other side: a Python script that speaks the protocol.
pub(crate) struct Peer {
    /// Below the root of the repository.
    pub(crate) script: &'static str,
    /// What it needs, as `name==version`.
    pub(crate) packages: &'static [&'static str],
}

/// One line of the table.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Given to both sides.
    pub(crate) arguments: &'static [&'static str],
    pub(crate) unit: Unit,
    /// Whether the peer can do it at all.
    pub(crate) compared: bool,
    /// Files that both sides read; their folder is the last argument of both.
    pub(crate) files: Option<Files>,
    /// What ours is built with beyond its default.
    pub(crate) extra: Option<Extra>,
}

/// A folder of files: a dataset, if it is there, or else what a script of the peer makes.
pub(crate) struct Files {
    /// Below `$CALMIX_DATASETS`; empty for none.
    pub(crate) dataset: &'static str,
    /// Below the root of the repository; it is given the folder.
    pub(crate) script: &'static str,
    /// Given to the script after the folder; they also name the folder in the cache.
    pub(crate) arguments: &'static [&'static str],
}

/// A feature of ours that not every machine can build.
pub(crate) struct Extra {
    pub(crate) feature: &'static str,
    /// Programs without which it does not build: the case is then skipped.
    pub(crate) programs: &'static [&'static str],
}

/// torchvision and what its transforms of Pillow images need.
const TORCHVISION: &[&str] = &[TORCH, "torchvision==0.28.0", "pillow==13.0.0", NUMPY];

pub(crate) const BENCHES: &[Bench] = &[PLAN, DATA, ORDER];

const PLAN: Bench = Bench {
    name: "plan",
    what: "one plan (Algorithm 1) for a batch of 64 + 448, against NumPy, one thread each",
    peer: Some(Peer { script: "bench/peers/plan.py", packages: &[NUMPY] }),
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
    // As many as bench/src/plan.rs and bench/peers/plan.py make in a repetition.
    let unit = Unit::Milliseconds { per_repetition: 20.0 };
    Case { name, arguments, unit, compared: true, files: None, extra: None }
}

const DATA: Bench = Bench {
    name: "data",
    what: "a weak and a strong view (USB) of a picture, against torchvision and Pillow, one thread each",
    peer: Some(Peer { script: "bench/peers/data.py", packages: TORCHVISION }),
    cases: &[
        pairs("32×32, decoded", &["decoded", "32", "512"], 512.0, Some(made(&["32", "32", "png"])), None),
        pairs("64×64, JPEG", &["jpeg", "64", "256"], 256.0, Some(TINY), None),
        pairs("500×375, JPEG", &["jpeg", "224", "32"], 32.0, Some(PHOTOS), None),
        pairs("64×64, JPEG, feature turbo", &["jpeg", "64", "256"], 256.0, Some(TINY), Some(TURBO)),
        pairs("500×375, JPEG, feature turbo", &["jpeg", "224", "32"], 32.0, Some(PHOTOS), Some(TURBO)),
    ],
};

/// Pictures of 64×64 pixels; those of ten classes are enough.
const TINY: Files = Files { dataset: "tiny-imagenet-10", ..made(&["64", "64", "jpg"]) };
const PHOTOS: Files = made(&["500", "375", "jpg"]);
const TURBO: Extra = Extra { feature: "turbo", programs: &["cmake", "nasm"] };

const fn made(arguments: &'static [&'static str]) -> Files {
    Files { dataset: "", script: "bench/peers/photos.py", arguments }
}

const fn pairs(
    name: &'static str,
    arguments: &'static [&'static str],
    per_repetition: f64,
    files: Option<Files>,
    extra: Option<Extra>,
) -> Case {
    Case {
        name,
        arguments,
        unit: Unit::Rate { name: "pairs/s", per_repetition },
        compared: true,
        files,
        extra,
    }
}

const ORDER: Bench = Bench {
    name: "order",
    what: "which sample stands where in a stream of a billion, one thread",
    peer: None,
    cases: &[
        positions("each on its own", &["at", "1000000000", "100000"]),
        positions("through a cursor", &["cursor", "1000000000", "100000"]),
    ],
};

const fn positions(name: &'static str, arguments: &'static [&'static str]) -> Case {
    let unit = Unit::Rate { name: "positions/s", per_repetition: 1e5 };
    Case { name, arguments, unit, compared: false, files: None, extra: None }
}
