//! `calmix doctor`: versions, devices and a self-test.

mod self_test;

use std::env::consts::{ARCH, OS};

use anyhow::Result;
use calmix::args::doctor::DoctorArgs;
use calmix::error::exit::Exit;
use calmix::io::shown::shown;
use calmix::lifecycle::LifecycleError;
use calmix::output::format::{counted, grouped};
use calmix::output::preparation::{no_weights_in, weights_hint};
use calmix::process::launched;
use calmix::process::version::{COMMIT, TARGET, VERSION, features_shown};
use calmix::recipe::device::Device;
use calmix::run::pretrained::weights_folder::WeightsFolder;
use calmix::terminal::{print, print_json, status};
use calmix_engine::device::LIBTORCH;
use calmix_engine::{device, precision};
use calmix_train::trainer;
use serde_json::json;

use crate::networks::features;
use self_test::SelfTest;

pub(crate) fn run(args: &DoctorArgs) -> Result<Exit> {
    let devices = device::all();
    let best = devices.first().copied().unwrap_or(Device::Cpu);
    let names: Vec<String> = devices.iter().map(Device::to_string).collect();
    let (cores, threads) = (launched::available(), trainer::threads(args.threads.unwrap_or(0), 1));
    let precision = format!("{:?}", precision::best(best)).to_lowercase();
    let folder = WeightsFolder::of_user();
    let weights = folder.names().map_err(LifecycleError::pretrained)?;
    print_text(
        args,
        &format!(
            "calmix     {VERSION} for {TARGET}\n\
         commit     {COMMIT}\n\
         features   {}\n\
         libtorch   {LIBTORCH}\n\
         devices    {}; default {best}\n\
         precision  {precision} on {best}\n\
         threads    {threads} of {}\n\
         weights    {}",
            features_shown(features()),
            names.join(", "),
            counted(cores, "core"),
            weights_shown(&folder, &weights),
        ),
    )?;
    launched::warn_if_oversubscribed(threads, 1);
    let test = if args.seconds == 0 { None } else { Some(test(args, threads)?) };
    if args.json {
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
        Some(_) => print_text(args, "next: calmix recipes, or calmix prepare FOLDER")?,
        None => {}
    }
    Ok(Exit::Done)
}

/// Runs the self-test and shows its result.
fn test(args: &DoctorArgs, threads: u32) -> Result<SelfTest> {
    status(&format!("training for about {} …", counted(args.seconds.into(), "second")));
    let test = SelfTest::run(threads, args.seconds)?;
    let repeated = if test.same { "bit-identical when repeated" } else { "DIFFERENT when repeated" };
    print_text(
        args,
        &format!(
            "self-test  {}, {} images/s, {:.0}% of the time waiting for data, {repeated}",
            counted(test.steps, "step"),
            grouped(test.images_per_second.round() as u64),
            100.0 * test.waiting,
        ),
    )?;
    Ok(test)
}

fn print_text(args: &DoctorArgs, text: &str) -> Result<()> {
    if args.json { Ok(()) } else { print(text) }
}

/// Lists the pretrained weights; if there are none, explains their benefit and how to get some.
fn weights_shown(folder: &WeightsFolder, names: &[String]) -> String {
    if names.is_empty() {
        let lines = format!("{}\n{}", no_weights_in(folder), weights_hint());
        return lines.replace('\n', "\n           ");
    }
    let names: Vec<String> = names.iter().map(shown).collect();
    format!("{} in {}", names.join(", "), shown(folder.path().display()))
}
