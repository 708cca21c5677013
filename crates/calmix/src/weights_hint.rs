//! What pretrained weights would bring and how to get them, where there are none.

use calmix::io::shown::shown;
use calmix::train::weights_folder::WeightsFolder;

/// What a user without pretrained weights misses.
const WHY: &str = "A small network trained from scratch makes several times as many errors on a few hundred images \
                   as a head on pretrained weights.";

/// Where pretrained weights come from.
const HOW: &str = "To get some: `cargo xtask weights` in a clone of calmix, then `calmix weights add FILE` \
                   (docs/pretrained.md). If you have them elsewhere, CALMIX_WEIGHTS names their folder.";

/// The folder that has no weights in it.
pub(crate) fn none_in(folder: &WeightsFolder) -> String {
    format!("no pretrained weights in {}", shown(folder.path().display()))
}

/// Why weights are worth having and how to get them, in two lines.
pub(crate) fn why_and_how() -> String {
    format!("{WHY}\n{HOW}")
}
