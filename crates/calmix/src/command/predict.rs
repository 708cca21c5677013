//! `calmix predict`: labels with calibrated confidence, for images or for vectors.

mod images;
mod vectors;

use anyhow::Result;

use super::predict_args::PredictArgs;
use crate::exit::Exit;
use crate::model_folder::input_kind;
use crate::predict::input_kind::InputKind;

pub(super) fn run(args: &PredictArgs) -> Result<Exit> {
    match input_kind(&args.run) {
        InputKind::Image => images::run(args),
        InputKind::Vector => vectors::run(args),
    }
}
