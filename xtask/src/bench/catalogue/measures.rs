//! The bench of measures and of the temperature, against the usual packages.

use super::{Bench, Case, Files, Made, Peer, Program, Ratio, Side, Sides, Unit, Wanted, wanted};
use crate::setup::venv::{NUMPY, TORCH};

pub(super) const MEASURES: Bench = Bench {
    name: "measures",
    what: "measures of 50,000 × 1,000 predictions and their temperature, in seconds of the processor of one thread; the \
           peak is what is needed beyond the input of 191 MiB",
    cases: &[
        case(
            "ECE from probabilities, 15 bins",
            &[
                ours(&["ece-probabilities"]),
                peer("torchmetrics", &["ece-probabilities", "torchmetrics"]),
                peer("netcal", &["ece-probabilities", "netcal"]),
            ],
            &[
                wanted("calmix", "torchmetrics", Ratio::Speed(3.0)),
                wanted("calmix", "netcal", Ratio::Speed(2.0)),
            ],
        ),
        case(
            "ECE from logits, 15 bins",
            &[ours(&["ece-logits"]), peer("torchmetrics", &["ece-logits", "torchmetrics"])],
            &[wanted("calmix", "torchmetrics", Ratio::Speed(1.5))],
        ),
        case(
            "Brier score",
            &[ours(&["brier"]), peer("scikit-learn", &["brier", "scikit-learn"])],
            &[wanted("calmix", "scikit-learn", Ratio::Speed(3.0))],
        ),
        case(
            "temperature",
            &[ours(&["temperature"]), peer("PyTorch L-BFGS", &["temperature", "torch"])],
            &[wanted("calmix", "PyTorch L-BFGS", Ratio::Speed(1.0))],
        ),
        case("class-wise ECE, 15 bins", &[ours(&["class-wise-ece"])], &[]),
        case("cautious temperature", &[ours(&["cautious-temperature"])], &[]),
    ],
};

/// The packages that the peers of all cases need.
const PACKAGES: &[&str] = &[TORCH, NUMPY, "torchmetrics==1.9.0", "netcal==1.4.0", "scikit-learn==1.9.1"];

const fn case(name: &'static str, sides: &'static [Side], wanted: &'static [Wanted]) -> Case {
    let script = Peer { script: "bench/peers/logits.py", packages: PACKAGES };
    Case {
        name,
        sides: Sides::Named { sides, wanted },
        unit: Unit::Milliseconds { per_repetition: 1.0 },
        files: Some(Files { dataset: "", made: Some(Made { script, arguments: &["50000", "1000"] }) }),
        extra: None,
    }
}

const fn ours(arguments: &'static [&'static str]) -> Side {
    Side { name: "calmix", program: Program::Ours, arguments }
}

const fn peer(name: &'static str, arguments: &'static [&'static str]) -> Side {
    Side {
        name,
        program: Program::Peer(Peer { script: "bench/peers/measures.py", packages: PACKAGES }),
        arguments,
    }
}
