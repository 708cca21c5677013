//! The arguments of `calmix doctor`.

use clap::Args;

/// Show versions, devices and threads, and run a ten-second self-test
///
/// The self-test trains a small network on synthetic images twice and compares the checkpoints byte by byte. If they
/// differ, this machine cannot resume a run exactly.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub struct DoctorArgs {
    /// CPU threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub threads: Option<u32>,
    /// Approximate duration of the self-test; 0 skips it
    #[arg(long, default_value_t = 10)]
    pub seconds: u16,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

const FIELDS: &str = "\
Fields of --json:
  calmix, libtorch   versions
  commit             the commit that it was built from, with -dirty if files had been changed;
                     unknown if built without git
  features, target   optional features compiled in, platform as compilers name it
  system             operating system and CPU architecture
  devices            available devices
  device, precision  default device and its precision
  threads, cores     CPU threads in use, CPU cores available
  weights            names of the pretrained weights that you have added
  self_test          steps, images_per_second, waiting (share of time waiting for data), same_bytes;
                     null if skipped";
