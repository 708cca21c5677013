//! `calmix doctor`: versions, devices and a self-test.

mod self_test;

use std::env::consts::{ARCH, OS};

use anyhow::Result;
use calmix::engine::device;
use calmix::engine::device::LIBTORCH;
use calmix::engine::precision;
use calmix::io::shown::shown;
use calmix::recipe::device::Device;
use calmix::train::trainer;

use calmix::train::trainer::TrainError;
use calmix::train::weights_folder::WeightsFolder;
use clap::Args;
use serde_json::json;

use crate::cores;
use crate::exit::Exit;
use crate::format::{counted, grouped};
use crate::terminal::{print, print_json, status};
use crate::version::{COMMIT, TARGET, VERSION, features, features_shown};
use crate::weights_hint;
use self_test::SelfTest;

/// Show versions, devices and threads, and run a ten-second self-test
///
/// The self-test trains a small network on synthetic images twice and compares the checkpoints byte by byte. If they
/// differ, this machine cannot resume a run exactly.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub(crate) struct DoctorArgs {
    /// CPU threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: Option<u32>,
    /// Approximate duration of the self-test; 0 skips it
    #[arg(long, default_value_t = 10)]
    seconds: u16,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
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

impl DoctorArgs {
    pub(crate) fn run(self) -> Result<Exit> {
        let devices = device::all();
        let best = devices.first().copied().unwrap_or(Device::Cpu);
        let names: Vec<String> = devices.iter().map(Device::to_string).collect();
        let (cores, threads) = (cores::available(), trainer::threads(self.threads.unwrap_or(0), 1));
        let precision = format!("{:?}", precision::best(best)).to_lowercase();
        let folder = WeightsFolder::of_user();
        let weights = folder.names().map_err(TrainError::Pretrained)?;
        self.print_text(&format!(
            "calmix     {VERSION} for {TARGET}\n\
             commit     {COMMIT}\n\
             features   {}\n\
             libtorch   {LIBTORCH}\n\
             devices    {}; default {best}\n\
             precision  {precision} on {best}\n\
             threads    {threads} of {}\n\
             weights    {}",
            features_shown(),
            names.join(", "),
            counted(cores, "core"),
            weights_shown(&folder, &weights),
        ))?;
        cores::warn_if_oversubscribed(threads, 1);
        let test = if self.seconds == 0 { None } else { Some(self.test(threads)?) };
        if self.json {
            print_json(&json!({
                "calmix": VERSION,
                "commit": COMMIT,
                "features": features().collect::<Vec<_>>(),
                "target": TARGET,
                "libtorch": LIBTORCH,
                "system": format!("{OS} {ARCH}"),
                "devices": names,
                "device": best.to_string(),
                "precision": precision,
                "threads": threads,
                "cores": cores,
                "weights": weights,
                "self_test": test.as_ref().map(|test| json!({
                    "steps": test.steps,
                    "images_per_second": test.images_per_second,
                    "waiting": test.waiting,
                    "same_bytes": test.same,
                })),
            }))?;
        }
        match test {
            Some(SelfTest { same: false, .. }) => {
                anyhow::bail!(
                    "two identical trainings gave different results, so this machine cannot resume a run exactly"
                )
            }
            Some(_) => self.print_text("next: calmix recipes, or calmix prepare FOLDER")?,
            None => {}
        }
        Ok(Exit::Done)
    }

    /// Runs the self-test and shows its result.
    fn test(&self, threads: u32) -> Result<SelfTest> {
        status(&format!("training for about {} …", counted(self.seconds.into(), "second")));
        let test = SelfTest::run(threads, self.seconds)?;
        let repeated = if test.same { "bit-identical when repeated" } else { "DIFFERENT when repeated" };
        self.print_text(&format!(
            "self-test  {}, {} images/s, {:.0}% of the time waiting for data, {repeated}",
            counted(test.steps, "step"),
            grouped(test.images_per_second.round() as u64),
            100.0 * test.waiting,
        ))?;
        Ok(test)
    }

    /// Prints text, unless the output is JSON.
    fn print_text(&self, text: &str) -> Result<()> {
        if self.json { Ok(()) } else { print(text) }
    }
}

/// Lists the pretrained weights, or says why and how to get some.
fn weights_shown(folder: &WeightsFolder, names: &[String]) -> String {
    if names.is_empty() {
        let lines = format!("{}\n{}", weights_hint::none_in(folder), weights_hint::why_and_how());
        return lines.replace('\n', "\n           ");
    }
    let names: Vec<String> = names.iter().map(shown).collect();
    format!("{} in {}", names.join(", "), shown(folder.path().display()))
}
