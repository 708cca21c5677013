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

pub(crate) const BENCHES: &[Bench] = &[Bench {
    name: "rng",
    what: "draws from a Philox stream, against NumPy's Generator(Philox)",
    peer: Some(Peer { script: "bench/peers/rng.py", packages: &["numpy==2.4.6"] }),
    cases: &[Case {
        name: "beta(0.4) draws",
        arguments: &["beta", "0.4", "1000000"],
        unit: Unit::Rate { name: "draws/s", per_repetition: 1e6 },
        compared: true,
    }],
}];
