//! The notices that the terminal shows while a run is prepared.

use std::sync::Arc;

use calmix::format::{grouped, rough_time};
use calmix::io::shown::shown;
use calmix::rate::Rate;
use calmix::recipe::{CPU_RECIPE, GPU_RECIPE, HEAD_RECIPE};
use calmix::run::weights_folder::WeightsFolder;
use calmix::stop::Stop;
use calmix::terminal::{clear_line, status, warn, warn_at_once};
use calmix::weights_hint;
use calmix_train::start::{
    BackboneChoice, InsteadOfTest, LONGEST_FEATURES, StartContext, StartNotice, measure_rate,
};

use crate::summary;

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

    /// What a preparation needs besides its arguments: this printer receives its notices and `stop` ends it.
    pub(crate) fn context<'a>(&'a mut self, stop: &'a Stop) -> StartContext<'a> {
        StartContext {
            stop: stop.flag(),
            warn: Arc::new(warn_at_once),
            measure_rate: &measure_rate,
            notify: Box::new(|notice| self.show(&notice)),
        }
    }

    fn show(&mut self, notice: &StartNotice<'_>) {
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
        InsteadOfTest::ValidationSplit => "the model and its calibrator (cross-fitted) are evaluated on val",
        InsteadOfTest::OutOfFold => "each label is evaluated by a head trained without it (network.folds)",
        InsteadOfTest::HeldOut => "the model is evaluated on the held-out labels (labels.validation)",
    }
}

/// Says which recipe calmix has chosen, why, and how to choose another.
pub(crate) fn chosen_recipe(recipe: &str) -> String {
    match recipe {
        HEAD_RECIPE => format!(
            "recipe {HEAD_RECIPE}, since you have pretrained weights: trains a head on frozen features\n\
             `calmix train {CPU_RECIPE}` trains a whole network from scratch instead"
        ),
        // Chosen only if there are no pretrained weights, so it says how to get some.
        CPU_RECIPE => format!(
            "recipe {CPU_RECIPE}, for a CPU: {}\n{}",
            weights_hint::none_in(&WeightsFolder::of_user()),
            weights_hint::why_and_how()
        ),
        _ => format!("recipe {GPU_RECIPE}, for a GPU; `calmix train {CPU_RECIPE}` takes minutes on a CPU"),
    }
}

/// Says which backbone calmix has chosen, why, and how long its features take, in two lines.
pub(crate) fn chosen_backbone(choice: &BackboneChoice) -> String {
    let BackboneChoice { weights, size, rate, views } = choice;
    format!(
        "weights {weights} at {size} pixels: the best available whose features take at most {} min\n\
         computing features of {} views at about {} per second takes {}, once for this folder",
        LONGEST_FEATURES.as_secs() / 60,
        grouped(*views),
        grouped(rate.round() as u64),
        rough_time(*views as f64 / rate.max(1e-9))
    )
}
