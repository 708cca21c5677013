//! What can be measured. A new bench is an entry here, a module in `bench/src`, and, where there is something
//! to compare with, a script in `bench/peers`.

use super::measurement::Unit;

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
}

/// NumPy, as the scripts here use it.
const NUMPY: &str = "numpy==2.4.6";

pub(crate) const BENCHES: &[Bench] = &[Bench {
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
}];

const fn plan(name: &'static str, arguments: &'static [&'static str]) -> Case {
    Case { name, arguments, unit: Unit::Milliseconds, compared: true }
}
