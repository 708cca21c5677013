//! The first actions of the program: it refuses processors that are too old, and turns off ONNX Runtime's telemetry.
//!
//! `.cargo/config.toml` compiles for x86-64-v3. On a processor without its instructions, the program would end with SIGILL and
//! without a message. `is_x86_feature_detected!` does not help: for features that the program is compiled with, it is the
//! constant `true`.
//!
//! Newer versions of ONNX Runtime create a database and an identifier of the device as soon as they are loaded; only an
//! environment variable that is set before prevents that. A process cannot set a variable for itself without `unsafe`, since
//! other threads may be reading the environment, so it restarts itself.

use std::{env, process};

use calmix_io::system;

use crate::args::Command;
use crate::error::exit::Exit;

/// Prints an error and returns the exit if the processor is too old; `None` if it is new enough.
///
/// Runs first and does as little as possible: any code before it, or in it, may use the instructions that it checks. Only the
/// initialisers of libtorch's libraries run earlier; they are compiled for any x86-64 processor.
#[cfg(all(target_arch = "x86_64", target_feature = "avx2"))]
#[inline(never)]
pub fn refuse_old_processor() -> Option<Exit> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    use std::io::Write;

    /// FMA, MOVBE, OSXSAVE (the system saves vector registers), AVX and F16C in ECX of leaf 1.
    const BASIC: u32 = 1 << 12 | 1 << 22 | 1 << 27 | 1 << 28 | 1 << 29;
    /// BMI1, AVX2 and BMI2 in EBX of leaf 7.
    const EXTENDED: u32 = 1 << 3 | 1 << 5 | 1 << 8;

    // A processor without leaf 7 returns another leaf.
    let has_extended = || __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ebx & EXTENDED == EXTENDED;
    if __cpuid(1).ecx & BASIC == BASIC && has_extended() {
        return None;
    }
    // Write directly to standard error, and ignore errors: there is nothing left to do about them.
    let _ = std::io::stderr().write_all(
        b"error: this calmix is compiled for processors with AVX2, FMA and BMI2 (x86-64-v3), which this one lacks\n\
          try: RUSTFLAGS= cargo install --locked --path crates/calmix, which builds calmix for older processors\n",
    );
    Some(Exit::Invalid)
}

/// Accepts any processor, because the program is compiled for all of its architecture.
#[cfg(not(all(target_arch = "x86_64", target_feature = "avx2")))]
pub fn refuse_old_processor() -> Option<Exit> {
    None
}

/// The variable that ONNX Runtime reads when it is loaded.
const TELEMETRY_VARIABLE: &str = "ORT_DISABLE_TELEMETRY";

/// Restarts this process with telemetry off, if the command may run a network and the variable is not set. Must come before any
/// signal handler, lock, thread or output. If it fails, the command continues: events are off in any case.
pub fn restart_without_telemetry(command: &Command) {
    if env::var_os(TELEMETRY_VARIABLE).is_some() || !may_run_network(command) {
        return;
    }
    if let Ok(program) = env::current_exe() {
        let mut again = process::Command::new(program);
        again.args(env::args_os().skip(1)).env(TELEMETRY_VARIABLE, "1");
        let _ = system::replace_process(&mut again);
    }
}

fn may_run_network(command: &Command) -> bool {
    matches!(
        command,
        Command::Train(_)
            | Command::Resume(_)
            | Command::Sweep(_)
            | Command::Evaluate(_)
            | Command::Calibrate(_)
            | Command::Certify(_)
            | Command::Predict(_)
            | Command::Export(_)
            | Command::Weights(_)
    )
}
