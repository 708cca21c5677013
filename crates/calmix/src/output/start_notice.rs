//! What the terminal shows of the choices while a run on images is prepared.

use std::sync::Arc;

use calmix_lifecycle::start::{BackboneChoice, StartContext};
use calmix_recipe::{CPU_RECIPE, GPU_RECIPE, HEAD_RECIPE};
use calmix_run::pretrained::weights_folder::WeightsFolder;

use crate::output::format::grouped;
use crate::output::notice_printer::NoticePrinter;
use crate::output::weights_hint;
use crate::process::stop::Stop;
use crate::terminal::warn_at_once;

/// What a preparation needs besides its arguments: `printer` receives its notices and `stop` ends it.
pub fn start_context<'a>(printer: &'a mut NoticePrinter, stop: &'a Stop) -> StartContext<'a> {
    StartContext {
        stop: stop.flag(),
        warn: Arc::new(warn_at_once),
        notify: Box::new(|notice| printer.show(&notice)),
    }
}

/// Says which recipe calmix has chosen, why, and how to choose another.
pub fn chosen_recipe(recipe: &str) -> String {
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

/// Says which backbone calmix has chosen, and by what.
pub fn chosen_backbone(choice: &BackboneChoice) -> String {
    let BackboneChoice { weights, size, views } = choice;
    format!(
        "weights {weights} at {size} pixels, by a fixed rule for {} views; their features are computed once for this folder",
        grouped(*views)
    )
}
