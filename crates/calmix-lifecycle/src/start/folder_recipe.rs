//! Which built-in recipe a folder of images is trained with if the user names none.

use calmix_recipe::device::Device;
use calmix_recipe::{CPU_RECIPE, GPU_RECIPE, HEAD_RECIPE};
use calmix_run::pretrained::weights_folder::WeightsFolder;

/// The recipe for a folder of images on a device; an encoder that the user names can only be below a head.
pub(super) fn folder_recipe(device: Device, names_encoder: bool) -> &'static str {
    match device {
        _ if names_encoder => HEAD_RECIPE,
        Device::Cuda(_) | Device::Mps => GPU_RECIPE,
        Device::Cpu => {
            let has_weights = WeightsFolder::of_user().names().is_ok_and(|names| !names.is_empty());
            if has_weights { HEAD_RECIPE } else { CPU_RECIPE }
        }
    }
}
