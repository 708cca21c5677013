//! The notices that the terminal shows while a run is prepared.

use calmix_io::redacted::redacted;
use calmix_io::shown::shown;
use calmix_lifecycle::start_notice::{InsteadOfTest, StartNotice};

use crate::output::data_warnings::{warn_about_data, warn_again};
use crate::terminal::rate::Rate;
use crate::terminal::{clear_line, status, warn};

/// Shows notices; with `--quiet` only warnings about files.
#[derive(Debug)]
pub struct NoticePrinter {
    is_quiet: bool,
    rate: Rate,
}

impl NoticePrinter {
    /// A printer; shows less if it is quiet. `what` is one of the samples that are read, such as `image`.
    pub fn new(is_quiet: bool, what: &'static str) -> Self {
        Self { is_quiet, rate: Rate::of_silent_command(what) }
    }

    /// Shows a notice.
    pub fn show(&mut self, notice: &StartNotice<'_>) {
        match notice {
            StartNotice::Read { files, total } => self.rate.show(*files, *total),
            StartNotice::ReadingEnded => clear_line(),
            StartNotice::Scanned { findings, table } => warn_about_data(findings, table),
            StartNotice::SharedTable { table, own } => {
                self.status(&format!("sharing the table {}", shown(table.display())));
                warn_again(own);
            }
            StartNotice::Reading { folder } => {
                self.status(&format!("reading {} …", shown(redacted(&folder.display().to_string()))));
            }
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
