//! Whether this processor has the instructions that the program is compiled with.
//!
//! `.cargo/config.toml` has the compiler use the instructions of x86-64-v3. On a processor without them the program would end
//! with SIGILL and without a message. `is_x86_feature_detected!` is of no use here: for features that the whole program is
//! compiled with it is the constant `true`.

use crate::error::exit::Exit;

/// Prints an error if the processor is too old and returns the exit; `None` if the processor is new enough.
///
/// Runs first and does as little as possible: any code before it, or in it, may use the very instructions that it checks.
/// Only the initialisers of libtorch's libraries run earlier; they are compiled for any x86-64 processor.
#[cfg(all(target_arch = "x86_64", target_feature = "avx2"))]
#[inline(never)]
pub fn refusal() -> Option<Exit> {
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
pub fn refusal() -> Option<Exit> {
    None
}
