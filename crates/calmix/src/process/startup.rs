//! What happens before anything else: a refusal of processors that are too old, and ONNX Runtime's telemetry off.
//!
//! `.cargo/config.toml` has the compiler use the instructions of x86-64-v3. On a processor without them the program would end
//! with SIGILL and without a message. `is_x86_feature_detected!` is of no use here: for features that the whole program is
//! compiled with it is the constant `true`.
//!
//! From some version on ONNX Runtime makes a database and an identifier of the device as soon as it is loaded, whatever is
//! requested of it later; only a variable that is set before prevents that. A process cannot set a variable for itself without
//! `unsafe`, since other threads may be reading: it starts itself again.

use std::os::unix::process::CommandExt;
use std::{env, process};

use crate::args::Command;
use crate::error::exit::Exit;

/// Prints an error if the processor is too old and returns the exit; `None` if the processor is new enough.
///
/// Runs first and does as little as possible: any code before it, or in it, may use the very instructions that it checks.
/// Only the initialisers of libtorch's libraries run earlier; they are compiled for any x86-64 processor.
#[cfg(all(target_arch = "x86_64", target_feature = "avx2"))]
#[inline(never)]
pub fn refuse_old_processor() -> Option<Exit> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    use std::io::Write;

    /// FMA, MOVBE, OSXSAVE (the system saves vector registers), AVX and F16C in ECX of leaf 1.
    const BASIC: u32 = 1 << 12 | 1 << 22 | 1 << 27 | 1 << 28 | 1 << 29;
    /// BMI1, AVX2 and BMI2 in EBX of leaf 7.
    const EXTENDED: u32 = 1 << 3 | 1 << 5 | 1 << 8;

    // A processor that has no leaf 7 answers with another leaf.
    let has_extended = || __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ebx & EXTENDED == EXTENDED;
    if __cpuid(1).ecx & BASIC == BASIC && has_extended() {
        return None;
    }
    // Straight to standard error: nothing is left to do about an error there.
    let _ = std::io::stderr().write_all(
        b"error: this calmix is compiled for processors with AVX2, FMA and BMI2 (x86-64-v3), which this one lacks\n\
          try: RUSTFLAGS= cargo install --locked --path crates/calmix, which builds calmix for older processors\n",
    );
    Some(Exit::Invalid)
}

/// Compiled for any processor of its architecture, the program runs on this one.
#[cfg(not(all(target_arch = "x86_64", target_feature = "avx2")))]
pub fn refuse_old_processor() -> Option<Exit> {
    None
}

/// The variable that ONNX Runtime reads when it is loaded.
const TELEMETRY_VARIABLE: &str = "ORT_DISABLE_TELEMETRY";

/// Replaces this process by itself with telemetry off, if the command may run a network and the variable is not set. Must come
/// before any signal handler, lock, thread or output. If it fails, the command goes on: events are off in any case.
pub fn restart_without_telemetry(command: &Command) {
    if env::var_os(TELEMETRY_VARIABLE).is_some() || !may_run_network(command) {
        return;
    }
    if let Ok(program) = env::current_exe() {
        let mut arguments = env::args_os();
        let mut again = process::Command::new(program);
        if let Some(name) = arguments.next() {
            again.arg0(name);
        }
        let _ = again.args(arguments).env(TELEMETRY_VARIABLE, "1").exec();
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
            | Command::Predict(_)
            | Command::Export(_)
            | Command::Weights(_)
    )
}
