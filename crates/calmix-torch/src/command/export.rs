//! `calmix export` of a model of images.

mod precision_difference;

use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use calmix::command::export_args::ExportArgs;
use calmix::error::CliError;
use calmix::exit::Exit;
use calmix::export::Exported;
use calmix::export::example::{self, ExampleInput};
use calmix::model_files::ModelFiles;
use calmix::model_folder::with_model;
use calmix::recipe::device::Device;
use calmix::recipe::precision::Precision;
use calmix::stop::Stop;
use calmix::terminal::{print, warn};

use crate::model::{Model, ModelOptions};
use precision_difference::PrecisionDifference;

pub(crate) fn run(args: &ExportArgs) -> Result<Exit> {
    let options = ModelOptions { device: Some(Device::Cpu), ..args.options()? };
    let folder = with_model(&args.run, "export", &[])?;
    let model = Model::load_with(folder, &options)?;
    for sentence in model.guarantee().missing() {
        warn(&sentence);
    }
    let trained_in = model.info().head.as_ref().map(|head| head.precision);
    if let Some(precision) = trained_in.filter(|&precision| precision != Precision::F32) {
        let stop = Stop::listen()?;
        match stop.ending_soon(|| {}, || PrecisionDifference::of_run(&args.run, &model, &stop)) {
            Ok(None) if stop.flag().load(Ordering::Relaxed) => return Ok(stop.exit()),
            Ok(difference) => check_difference(args, precision, difference)?,
            // The dataset may be elsewhere by now.
            Err(error) => warn(&format!("{}: {error:#}", not_compared(precision))),
        }
    }
    let spec = model.info().model.context("a model of images without a network")?;
    let pixels = example::images(&spec);
    let logits = model.logits(&pixels)?;
    let files = ModelFiles::open(folder)?;
    let exported = Exported {
        run: folder,
        files: &files,
        rule: model.rule(),
        options: &options,
        input: ExampleInput::Images(&pixels, spec.size as usize),
        logits: &logits,
    };
    exported.write(&args.to)?;
    Ok(Exit::Done)
}

/// Shows how much the answers of the graph differ from the run's, and refuses a large difference.
fn check_difference(
    args: &ExportArgs,
    precision: Precision,
    difference: Option<PrecisionDifference>,
) -> Result<()> {
    let Some(difference) = difference else {
        warn(&format!("{}: the run has no predictions of test images", not_compared(precision)));
        return Ok(());
    };
    print(&format!("{}\n", difference.table(precision)))?;
    if difference.is_small() || args.accept_precision {
        return Ok(());
    }
    let message = format!(
        "the graph computes in f32 and answers differently from the run, which computes in {precision}; the limits are \
         {}",
        PrecisionDifference::LIMITS
    );
    let hint = "export it anyway with --accept-precision, or train it again with --set train.precision=f32";
    Err(CliError::failed(message).hint(hint).into())
}

fn not_compared(precision: Precision) -> String {
    format!(
        "the graph computes in f32 and the run in {precision}, and how much that changes was not measured"
    )
}
