//! Running unit tests under Miri, which finds undefined behaviour in `unsafe` code, including that of dependencies. Needs a
//! nightly toolchain with the component `miri`.

use std::process::{Command, Stdio};

use super::step::Action;
use crate::workspace;

/// Packages of pure computation: Miri supports neither libtorch nor most system calls.
const PACKAGES: [&str; 2] = ["--package=calmix-core", "--package=calmix-head"];

/// Tests that take minutes each under Miri, mostly of distributions, and one that allocates more memory than there is.
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

/// Returns the step, or the reason why it is skipped.
pub(crate) fn action() -> Action {
    if !is_installed() {
        return Action::Skip {
            reason: "no Miri: `rustup toolchain install nightly --component miri,rust-src`",
        };
    }
    let mut command = nightly_cargo();
    // Miri does not support inline assembly, which libm would use for square roots.
    command.args(["miri", "test", "--locked", "--lib", "--features", "libm/force-soft-floats"]);
    command.args(PACKAGES).arg("--");
    for test in SKIPPED {
        command.args(["--skip", test]);
    }
    // Tests read the working directory, and expect exact logarithms, to which Miri would add noise.
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation -Zmiri-deterministic-floats");
    Action::Command(command)
}

fn is_installed() -> bool {
    let mut command = nightly_cargo();
    command.args(["miri", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns the cargo of the nightly toolchain. The `cargo` that runs xtask is the binary itself, which does not accept
/// `+nightly`.
fn nightly_cargo() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).current_dir(workspace::root());
    // Set by the cargo that runs xtask, for its own toolchain.
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    command
}
