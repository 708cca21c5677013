//! How much memory the state of samples takes while it is saved and read. One test: the peak is the process's own.
#![cfg(target_os = "linux")]

use calmix_core::method::Method;
use calmix_core::preset::paper;
use calmix_core::pseudo::{Base, FixMatch};
use calmix_core::samples::{Samples, UnlabelledSamples};
use calmix_run::tensor_files::sample_files::{read_unlabelled, write_unlabelled};

const MB: u64 = 1_000_000;

#[test]
fn saving_takes_one_copy_and_reading_none_but_the_file() {
    let state = micro_batch();
    let before = status("VmRSS:");
    let file = write_unlabelled(&state).unwrap();
    let size = file.len() as u64;
    assert!(size > 100 * MB, "{size} bytes");
    let taken = status("VmHWM:") - before;
    assert!(taken < size + 10 * MB, "{} MB for a file of {} MB", taken / MB, size / MB);

    drop(state);
    let fresh = micro_batch();
    let before = status("VmRSS:");
    let read = read_unlabelled(&file, fresh).unwrap();
    let taken = status("VmHWM:").saturating_sub(before);
    assert!(taken < size / 2 + 10 * MB, "{} MB to read {} MB", taken / MB, size / MB);
    assert_eq!(write_unlabelled(&read).unwrap(), file);
}

/// 250,000 samples of 100 classes, with margins that are in memory.
fn micro_batch() -> UnlabelledSamples {
    let method: Method = paper(Base::FixMatch(FixMatch::default()));
    let mut micro_batch = Samples::new(&method, 100, [250_000]).micro_batches.remove(0);
    let margins = micro_batch.margins.take().unwrap();
    let mut parts = calmix_core::margin::MarginParts::from(margins);
    parts.values.fill(0.5);
    parts.visits.fill(1);
    micro_batch.margins = Some(parts.try_into().unwrap());
    micro_batch
}

/// Bytes that the system reports of this process.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}
