//! `calmix doctor`: does everything work on this machine, and how fast?

mod trial;

use std::env::consts::{ARCH, OS};

use anyhow::Result;
use calmix::engine::device::{Device, LIBTORCH};
use calmix::engine::precision::Precision;
use calmix::train::trainer;
use clap::Args;
use serde_json::json;

use crate::cores;
use crate::exit::Exit;
use crate::number::{counted, grouped};
use crate::terminal::{say, say_json, tell};
use trial::{Trial, try_out};

/// Show versions, devices and threads, and train for some ten seconds to see that everything works
///
/// The self-test trains a small network on made-up images twice and compares every byte of the two: a machine on which
/// they differ cannot resume a run exactly.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub(crate) struct Doctor {
    /// Threads of the arithmetic on a CPU [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: Option<u32>,
    /// How long the self-test trains, roughly; 0 for no self-test
    #[arg(long, default_value_t = 10)]
    seconds: u16,
    /// Print one JSON document instead, for programs
    #[arg(long)]
    json: bool,
}

const FIELDS: &str = "\
Fields of --json:
  calmix, libtorch  their versions
  system            the operating system and the processor's architecture
  devices           what there is to compute on
  device            the one that is taken, with its precision
  threads, cores    of the arithmetic, of the machine
  self_test         steps, images_per_second, waiting (a share of the time), same_bytes; or null";

impl Doctor {
    pub(crate) fn run(self) -> Result<Exit> {
        let devices = Device::all();
        let best = devices.first().copied().unwrap_or(Device::Cpu);
        let names: Vec<String> = devices.iter().map(Device::to_string).collect();
        let (cores, threads) = (cores::all(), trainer::threads(self.threads.unwrap_or(0), 1));
        let precision = format!("{:?}", Precision::best(best)).to_lowercase();
        self.say(&format!(
            "calmix     {} for {OS} {ARCH}\n\
             libtorch   {LIBTORCH}\n\
             devices    {}; {best} is taken unless you say otherwise\n\
             precision  {precision} on {best}\n\
             threads    {threads} of {}",
            env!("CARGO_PKG_VERSION"),
            names.join(", "),
            counted(cores, "core"),
        ))?;
        cores::warn_if_crowded(threads);
        let trial = if self.seconds == 0 { None } else { Some(self.trial(threads)?) };
        if self.json {
            say_json(&json!({
                "calmix": env!("CARGO_PKG_VERSION"),
                "libtorch": LIBTORCH,
                "system": format!("{OS} {ARCH}"),
                "devices": names,
                "device": best.to_string(),
                "precision": precision,
                "threads": threads,
                "cores": cores,
                "self_test": trial.as_ref().map(|trial| json!({
                    "steps": trial.steps,
                    "images_per_second": trial.images_per_second,
                    "waiting": trial.waiting,
                    "same_bytes": trial.same,
                })),
            }))?;
        }
        match trial {
            Some(Trial { same: false, .. }) => {
                anyhow::bail!(
                    "two equal trainings differ: a run that is resumed on this machine is not exact"
                )
            }
            Some(_) => self.say("next: calmix recipes, or calmix prepare FOLDER")?,
            None => {}
        }
        Ok(Exit::Done)
    }

    /// Trains for a while, and says how it went.
    fn trial(&self, threads: u32) -> Result<Trial> {
        tell(&format!("training for about {} …", counted(self.seconds.into(), "second")));
        let trial = try_out(threads, self.seconds)?;
        let verdict = if trial.same { "twice the same bytes" } else { "NOT the same bytes twice" };
        self.say(&format!(
            "self-test  {} steps, {} images/s, {:.0} % of the time waiting for data, {verdict}",
            grouped(trial.steps),
            grouped(trial.images_per_second.round() as u64),
            100.0 * trial.waiting,
        ))?;
        Ok(trial)
    }

    /// Prints what is for people; a program gets it all at the end.
    fn say(&self, text: &str) -> Result<()> {
        if self.json { Ok(()) } else { say(text) }
    }
}
