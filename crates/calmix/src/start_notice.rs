//! What happens while a run is prepared, on the terminal.

use calmix::io::shown::shown;
use calmix::train::start::{
    BackboneChoice, CPU_RECIPE, GPU_RECIPE, HEAD_RECIPE, InsteadOfTest, LONGEST_FEATURES, StartNotice,
};
use calmix::train::weights_folder::WeightsFolder;

use crate::format::{grouped, rough_time};
use crate::predict::rate::Rate;
use crate::summary;
use crate::terminal::{clear_line, status, warn};
use crate::weights_hint;

/// Shows notices; with `--quiet` only warnings about files.
#[derive(Debug)]
pub(crate) struct NoticePrinter {
    is_quiet: bool,
    rate: Rate,
}

impl NoticePrinter {
    pub(crate) fn new(is_quiet: bool) -> Self {
        Self { is_quiet, rate: Rate::of_silent_command() }
    }

    pub(crate) fn show(&mut self, notice: &StartNotice<'_>) {
        match notice {
            StartNotice::Read { files, total } => self.rate.show(*files, *total),
            StartNotice::ReadingEnded => clear_line(),
            StartNotice::Scanned { findings, table } => summary::warn_about_data(findings, table),
            StartNotice::SharedTable { table, own } => {
                self.status(&format!("sharing the table {}", shown(table.display())));
                summary::warn_again(own);
            }
            StartNotice::Reading { folder } => self.status(&format!("reading {} …", shown(folder.display()))),
            StartNotice::NoTestSplit { evaluated_on } if !self.is_quiet => {
                warn(&format!("there is no test subset: {}", in_words(*evaluated_on)));
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

fn in_words(evaluated_on: InsteadOfTest) -> &'static str {
    match evaluated_on {
        InsteadOfTest::ValidationSplit => {
            "val evaluates the model and fits its calibrator, each label without itself"
        }
        InsteadOfTest::OutOfFold => "every label evaluates a head that is trained without it (network.folds)",
        InsteadOfTest::HeldOut => "the labels that are held out evaluate the model (labels.validation)",
    }
}

/// Which recipe calmix has chosen, why, and how to choose otherwise.
pub(crate) fn chosen_recipe(recipe: &str) -> String {
    match recipe {
        HEAD_RECIPE => format!(
            "recipe {HEAD_RECIPE}, since you have pretrained weights: a head on frozen features; `calmix train {CPU_RECIPE}` trains a \
             whole network from scratch"
        ),
        // calmix chooses it if there are no weights.
        CPU_RECIPE => format!(
            "recipe {CPU_RECIPE}, for a CPU: {}\n{}",
            weights_hint::none_in(&WeightsFolder::of_user()),
            weights_hint::why_and_how()
        ),
        _ => format!("recipe {GPU_RECIPE}, for a GPU; `calmix train {CPU_RECIPE}` takes minutes on a CPU"),
    }
}

/// Which backbone calmix has chosen, why, and how long its features take, in two lines.
pub(crate) fn chosen_backbone(choice: &BackboneChoice) -> String {
    let BackboneChoice { weights, size, rate, views } = choice;
    format!(
        "weights {weights} at {size} pixels: the best available whose features take at most {} min\n\
         features of {} views at about {} per second: {}, once for this folder",
        LONGEST_FEATURES.as_secs() / 60,
        grouped(*views),
        grouped(rate.round() as u64),
        rough_time(*views as f64 / rate.max(1e-9))
    )
}
