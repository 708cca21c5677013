//! The built-in recipes for a dataset, if the user names none.

use crate::SourceName;

/// The recipe for a folder of images on a GPU.
pub const GPU_RECIPE: &str = "folder";
/// The recipe for a folder of images on a CPU, without pretrained weights.
pub const CPU_RECIPE: &str = "cpu-folder";
/// The recipe for a folder of images on a CPU: a head on a pretrained backbone.
pub const HEAD_RECIPE: &str = "head-folder";

/// The recipe for vectors that the user already has.
pub const VECTORS_RECIPE: &str = "vectors";

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
        SourceName::Folder | SourceName::LabelsCsv | SourceName::Webdataset | SourceName::Parquet => {
            CPU_RECIPE
        }
        SourceName::Vectors => VECTORS_RECIPE,
    }
}
