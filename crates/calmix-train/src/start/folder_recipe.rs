//! Which built-in recipe a dataset is trained with if the user names none.

use calmix_engine::device;
use calmix_recipe::SourceName;
use calmix_recipe::device::Device;

use crate::weights_folder::WeightsFolder;

/// The recipe for a folder of images on a GPU.
pub const GPU_RECIPE: &str = "folder";
/// The recipe for a folder of images on a CPU, without pretrained weights.
pub const CPU_RECIPE: &str = "cpu-folder";
/// The recipe for a folder of images on a CPU: a head on a pretrained backbone.
pub const HEAD_RECIPE: &str = "head-folder";

/// The recipe for a folder of images on a device, or on the best one of this machine.
pub fn folder_recipe(device: Option<Device>) -> &'static str {
    match device.unwrap_or_else(device::fastest) {
        Device::Cuda(_) | Device::Mps => GPU_RECIPE,
        Device::Cpu => {
            let has_weights = WeightsFolder::of_user().names().is_ok_and(|names| !names.is_empty());
            if has_weights { HEAD_RECIPE } else { CPU_RECIPE }
        }
    }
}

/// Whether a built-in recipe takes whatever splits a folder of images has.
pub fn is_for_folders(recipe: Option<&str>) -> bool {
    matches!(recipe, Some(GPU_RECIPE | CPU_RECIPE | HEAD_RECIPE))
}

/// The recipe to suggest for a dataset: one for a CPU if there is one.
pub fn recipe_for(source: SourceName) -> &'static str {
    match source {
        SourceName::Cifar10 => "cpu-cifar10",
        SourceName::Cifar100 | SourceName::Cifar100Coarse => "cifar100",
        SourceName::Mnist | SourceName::FashionMnist => "cpu-fashion-mnist",
        SourceName::Svhn | SourceName::SvhnNoExtra => "svhn",
        SourceName::Stl10 => "stl10",
        SourceName::Imagenet => "imagenet",
        SourceName::Webvision => "webvision",
        SourceName::Folder | SourceName::LabelsCsv | SourceName::Webdataset => CPU_RECIPE,
    }
}
