//! What the terminal shows of the choices while a run on images is prepared.

use std::sync::Arc;

use calmix::format::{grouped, rough_time};
use calmix::notice_printer::NoticePrinter;
use calmix::recipe::{CPU_RECIPE, GPU_RECIPE, HEAD_RECIPE};
use calmix::run::weights_folder::WeightsFolder;
use calmix::stop::Stop;
use calmix::terminal::warn_at_once;
use calmix::weights_hint;
use calmix_train::start::{BackboneChoice, LONGEST_FEATURES, StartContext, measure_rate};

/// What a preparation needs besides its arguments: `printer` receives its notices and `stop` ends it.
pub(crate) fn start_context<'a>(printer: &'a mut NoticePrinter, stop: &'a Stop) -> StartContext<'a> {
    StartContext {
        stop: stop.flag(),
        warn: Arc::new(warn_at_once),
        measure_rate: &measure_rate,
        notify: Box::new(|notice| printer.show(&notice)),
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
