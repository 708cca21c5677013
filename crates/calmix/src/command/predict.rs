//! `calmix predict`: labels with calibrated confidence, for images or for vectors.

mod images;
mod vectors;

use anyhow::Result;

use crate::args::predict::PredictArgs;
use crate::error::exit::Exit;
use crate::model::folder::input_kind;
use crate::predict::input_kind::InputKind;

pub(super) fn run(args: &PredictArgs) -> Result<Exit> {
    match input_kind(&args.run) {
        InputKind::Image => images::run(args),
        InputKind::Vector => vectors::run(args),
    }
}
