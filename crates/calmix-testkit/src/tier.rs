//! How much of a test runs, and which tests could not run.

use std::fs::File;
use std::io::Write;
use std::{env, thread};

/// Whether all combinations are tested: `CALMIX_EXHAUSTIVE=1`, which `cargo xtask check --nightly` sets.
pub fn is_exhaustive() -> bool {
    env::var("CALMIX_EXHAUSTIVE").is_ok_and(|value| value == "1")
}

/// Takes a number from the variable of this name; if it is not set, from the tier.
pub fn number(variable: &str, usual: u32, exhaustive: u32) -> u32 {
    match env::var(variable) {
        Ok(value) => value.parse().unwrap_or_else(|_| panic!("{variable}={value} is not a number")),
        Err(_) if is_exhaustive() => exhaustive,
        Err(_) => usual,
    }
}

/// Says that the test which calls this cannot run here. `cargo xtask check` counts the lines of `$CALMIX_SKIPPED`.
pub fn skipped(reason: &str) {
    // Cargo sets the name of the package whose test runs; the compiler would only know this one.
    let package = env::var("CARGO_PKG_NAME").unwrap_or_else(|_| "calmix".to_owned());
    // The test harness names the thread of a test after the test.
    let thread = thread::current();
    let line = format!("{package} {}: {reason}\n", thread.name().unwrap_or("main"));
    eprint!("skipped: {line}");
    if let Some(file) = env::var_os("CALMIX_SKIPPED") {
        // In one write, so that lines of tests that run at the same time do not mix.
        let mut file = File::options().append(true).create(true).open(file).expect("$CALMIX_SKIPPED");
        file.write_all(line.as_bytes()).expect("$CALMIX_SKIPPED");
    }
}
