//! Runs unit tests under Miri, which finds undefined behaviour in `unsafe` code, ours and that of dependencies. It needs a
//! nightly toolchain with the component `miri`.

use std::process::{Command, Stdio};

use super::step::Action;
use crate::workspace;

/// Pure computation: Miri interprets neither libtorch nor most calls of the system.
const PACKAGES: [&str; 2] = ["--package=calmix-core", "--package=calmix-head"];

/// Tests that take minutes each under Miri, mostly of distributions, and one that asks for more memory than there is.
const SKIPPED: [&str; 12] = [
    "cosine::tests::a_similarity",
    "cosine::tests::similarities",
    "lanes::",
    "loss::tests::gradients",
    "margin::labelled::",
    "mixup::mixer::",
    "order::permutation::",
    "projection::tests::directions",
    "rng::draw::",
    "samples::tests::too_many_samples_for_memory",
    "micro_batching::tests::",
    "softmax::tests::exp_of_negative",
];

/// The step, or why it is skipped.
pub(crate) fn action() -> Action {
    if !is_installed() {
        return Action::Skip {
            reason: "no Miri: `rustup toolchain install nightly --component miri,rust-src`",
        };
    }
    let mut command = nightly_cargo();
    // Miri interprets no assembler, which libm takes its square roots from otherwise.
    command.args(["miri", "test", "--locked", "--lib", "--features", "libm/force-soft-floats"]);
    command.args(PACKAGES).arg("--");
    for test in SKIPPED {
        command.args(["--skip", test]);
    }
    // Tests read the name of the working directory, and expect the logarithms of the system without Miri's noise.
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation -Zmiri-deterministic-floats");
    Action::Command(command)
}

fn is_installed() -> bool {
    let mut command = nightly_cargo();
    command.args(["miri", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The cargo of the nightly toolchain. The one that runs xtask is the program itself, which takes no `+nightly`.
fn nightly_cargo() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).current_dir(workspace::root());
    // Set by the cargo that runs xtask, for its own toolchain.
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    command
}
