//! A processor that is too old, as QEMU imitates it.

use std::process::Command;

use calmix_testkit::tier;

use super::new_workspace;

#[test]
fn processor_without_avx2_is_refused_with_a_message() {
    if !cfg!(target_feature = "avx2") {
        return tier::skipped("calmix is compiled for any processor");
    }
    // Debian's qemu-user has it.
    let Ok(help) = Command::new("qemu-x86_64").args(["-cpu", "help"]).output() else {
        return tier::skipped("there is no qemu-x86_64");
    };
    assert!(String::from_utf8_lossy(&help.stdout).contains("Nehalem"));
    let workspace = new_workspace();
    let mut command = Command::new("qemu-x86_64");
    command.args(["-cpu", "Nehalem"]).arg(env!("CARGO_BIN_EXE_calmix")).arg("--version");
    let old = workspace.end(command).with_code(2);
    old.reports(&[
        "error: this calmix is compiled for processors with AVX2, FMA and BMI2 (x86-64-v3), which this one lacks\n",
        "try: RUSTFLAGS= cargo install --locked --path crates/calmix",
    ]);
    assert_eq!(old.stdout, "");
}
