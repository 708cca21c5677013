//! `calmix doctor`: does everything work on this machine, and how fast?

mod trial;

use std::env::consts::{ARCH, OS};

use anyhow::Result;
use calmix::engine::device::{Device, LIBTORCH};
use calmix::engine::precision::Precision;
use calmix::train::trainer;
use clap::Args;

use crate::cores;
use crate::exit::Exit;
use crate::number::{counted, grouped};
use crate::terminal::{say, tell};
use trial::{Trial, try_out};

/// Show versions, devices and threads, and train for some ten seconds to see that everything works
///
/// The self-test trains a small network on made-up images twice and compares every byte of the two: a machine on which
/// they differ cannot resume a run exactly.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Threads of the arithmetic on a CPU [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: Option<u32>,
    /// How long the self-test trains, roughly; 0 for no self-test
    #[arg(long, default_value_t = 10)]
    seconds: u16,
}

impl Doctor {
    pub(crate) fn run(self) -> Result<Exit> {
        let devices = Device::all();
        let best = devices.first().copied().unwrap_or(Device::Cpu);
        let names: Vec<String> = devices.iter().map(Device::to_string).collect();
        let (cores, threads) = (cores::all(), trainer::threads(self.threads.unwrap_or(0)));
        say(&format!(
            "calmix     {} for {OS} {ARCH}\n\
             libtorch   {LIBTORCH}\n\
             devices    {}; {best} is taken unless you say otherwise\n\
             precision  {} on {best}\n\
             threads    {threads} of {}",
            env!("CARGO_PKG_VERSION"),
            names.join(", "),
            format!("{:?}", Precision::best(best)).to_lowercase(),
            counted(cores, "core"),
        ))?;
        cores::warn_if_crowded(threads);
        if self.seconds == 0 {
            return Ok(Exit::Done);
        }
        tell(&format!("training for about {} …", counted(self.seconds.into(), "second")));
        let Trial { steps, images_per_second, waiting, same } = try_out(threads, self.seconds)?;
        let verdict = if same { "twice the same bytes" } else { "NOT the same bytes twice" };
        say(&format!(
            "self-test  {} steps, {} images/s, {:.0} % of the time waiting for data, {verdict}",
            grouped(steps),
            grouped(images_per_second.round() as u64),
            100.0 * waiting,
        ))?;
        if !same {
            anyhow::bail!("two equal trainings differ: a run that is resumed on this machine is not exact");
        }
        say("next: calmix recipes, or calmix prepare FOLDER")?;
        Ok(Exit::Done)
    }
}
