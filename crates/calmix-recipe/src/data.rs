//! What is trained on: the dataset, and which of its labels are kept.

use calmix_core::rng::Seed;
use calmix_data::prepare::{Cifar100Labels, SourceSpec};
use calmix_data::shrink::DEFAULT_SIDE;
use calmix_data::source::labels_csv::{self, LabelColumns};
use calmix_data::source::{FolderLayout, idx};
use calmix_data::split::{HoldOut, Rule, SplitPlan};

use crate::field::limit::{KEPT, SHARE, SOME, SOME_SHARE, above, from};
use crate::field::{choice, section};

section! {
    /// The dataset.
    Data {
        /// What the files are.
        fixed source: SourceName = SourceName::Folder;
        /// The folder that holds them. No recipe knows it: it is given by a file, the environment or `--set`.
        free path: String = String::new();
        /// The folder that `prepare` wrote; empty for one of the run's own, which is then prepared first.
        free prepared: String = String::new();
        /// Which folders are splits and which are classes.
        #[when(source is SourceName::Folder)]
        fixed layout: LayoutName = LayoutName::Auto;
        /// The column of a list of labels that names the image; empty for one with a usual name.
        #[when(source is SourceName::LabelsCsv)]
        fixed path_column: String = String::new();
        /// The column of a list of labels that holds the class; empty for one with a usual name.
        #[when(source is SourceName::LabelsCsv)]
        fixed label_column: String = String::new();
        /// Whether images without a label are trained on: in `labels-csv` those that no row names (otherwise left
        /// out), in `webdataset` those without a class (otherwise an error).
        #[when(source is SourceName::LabelsCsv | SourceName::Webdataset)]
        fixed unlabelled: bool = true;
        /// The shorter side in pixels to which larger images are shrunk when the dataset is prepared; 0 keeps their size.
        /// With 512, a table that was prepared with another number fits, too.
        #[when(source is SourceName::Folder | SourceName::LabelsCsv)]
        fixed shrink: u32 = DEFAULT_SIDE, from(0.0).to(16_384.0);
        /// The subset that models are evaluated by; empty if there is none.
        fixed test: String = "test".into();
        /// The mean of red, green and blue, which is subtracted from pixels in 0 to 1.
        fixed mean: [f64; 3] = [0.485, 0.456, 0.406], SHARE;
        /// The standard deviation of red, green and blue, which pixels are then divided by.
        fixed std: [f64; 3] = [0.229, 0.224, 0.225], above(0.0);
    }
}

choice! {
    /// What the files of a dataset are.
    SourceName {
        /// CIFAR-10, binary version.
        Cifar10 = "cifar10",
        /// CIFAR-100, binary version, 100 classes.
        Cifar100 = "cifar100",
        /// CIFAR-100, binary version, its 20 coarse classes.
        Cifar100Coarse = "cifar100-coarse",
        /// MNIST.
        Mnist = "mnist",
        /// Fashion-MNIST.
        FashionMnist = "fashion-mnist",
        /// SVHN, cropped digits, with its extra images.
        Svhn = "svhn",
        /// SVHN without its extra images.
        SvhnNoExtra = "svhn-no-extra",
        /// STL-10, binary version, with its unlabelled images.
        Stl10 = "stl10",
        /// A folder for each class, and one for unlabelled images.
        Folder = "folder",
        /// A folder of images with `labels.csv` or `metadata.csv`.
        LabelsCsv = "labels-csv",
        /// Tar shards of the WebDataset convention.
        Webdataset = "webdataset",
        /// ImageNet in its folder layout.
        Imagenet = "imagenet",
        /// WebVision with its file lists.
        Webvision = "webvision",
    }
}

choice! {
    /// How the folders of a dataset are read.
    LayoutName {
        /// By their names and contents; an error where two readings are possible.
        Auto = "auto",
        /// Every folder is a class, whatever its name; only `unlabelled` is none.
        Classes = "classes",
        /// `train`, `val`, `test` and `unlabelled` are splits; without `train`, other folders are its classes.
        Splits = "splits",
        /// Folders are groups of classes, and the folders in them are the classes.
        Nested = "nested",
    }
}

section! {
    /// Which labels are kept; all others are forgotten.
    Labels {
        /// How the number of labels is given.
        fixed keep: Keep = Keep::PerClass;
        /// How many, of each class or in all.
        #[when(keep is Keep::PerClass | Keep::Total)]
        fixed count: u64 = 4, SOME;
        /// Which share, where a share is kept.
        #[when(keep is Keep::Share)]
        fixed share: f64 = 0.1, SOME_SHARE;
        /// The split whose labels are kept, where they are given: a `split.json`.
        #[when(keep is Keep::Given)]
        free file: String = String::new();
        /// What the draw depends on besides the dataset: the same labels in every run with this number.
        fixed seed: u64 = 0;
        /// The subsets that labels come from.
        fixed from: Vec<String> = vec!["train".into()];
        /// The subsets whose samples are trained on without their label.
        fixed unlabelled_from: Vec<String> = vec!["train".into()];
        /// How many samples are trained on without their label; 0 for all there are. Which ones does not depend on the
        /// seed.
        fixed unlabelled_count: u64 = 0;
        /// Whether samples that keep their label are among the unlabelled ones, too.
        fixed include_labelled: bool = true;
        /// The share of the labels that is held out for validation, or a rule; no class gives its last label. Where the
        /// dataset has a validation split of its own, that one is used and no label is held out.
        fixed validation: HoldOut = HoldOut::NONE, KEPT;
    }
}

choice! {
    /// How the number of labels is given.
    Keep {
        /// So many of each class: `count`.
        PerClass = "per-class",
        /// So many in all, evenly over the classes: `count`.
        Total = "total",
        /// The same share of each class: `share`.
        Share = "share",
        /// Every label.
        All = "all",
        /// Exactly those of `file`.
        Given = "given",
    }
}

impl Data {
    /// What the files are, as `prepare` takes it.
    pub fn source_spec(&self) -> SourceSpec {
        match self.source {
            SourceName::Cifar10 => SourceSpec::Cifar10,
            SourceName::Cifar100 => SourceSpec::Cifar100 { labels: Cifar100Labels::Fine },
            SourceName::Cifar100Coarse => SourceSpec::Cifar100 { labels: Cifar100Labels::Coarse },
            SourceName::Mnist => SourceSpec::Idx { classes: idx::Classes::Digits },
            SourceName::FashionMnist => SourceSpec::Idx { classes: idx::Classes::Fashion },
            SourceName::Svhn => SourceSpec::Svhn { extra: true },
            SourceName::SvhnNoExtra => SourceSpec::Svhn { extra: false },
            SourceName::Stl10 => SourceSpec::Stl10,
            SourceName::Folder => SourceSpec::Folder {
                layout: match self.layout {
                    LayoutName::Auto => FolderLayout::Auto,
                    LayoutName::Classes => FolderLayout::Classes,
                    LayoutName::Splits => FolderLayout::Splits,
                    LayoutName::Nested => FolderLayout::Nested,
                },
                shrink: self.shrink,
            },
            SourceName::LabelsCsv => SourceSpec::LabelsCsv {
                unlisted: if self.unlabelled {
                    labels_csv::Unlisted::Unlabelled
                } else {
                    labels_csv::Unlisted::LeaveOut
                },
                columns: LabelColumns { path: named(&self.path_column), label: named(&self.label_column) },
                shrink: self.shrink,
            },
            SourceName::Webdataset => SourceSpec::Webdataset { unlabelled: self.unlabelled },
            SourceName::Imagenet => SourceSpec::Imagenet,
            SourceName::Webvision => SourceSpec::Webvision,
        }
    }
}

fn named(column: &str) -> Option<String> {
    Some(column.to_owned()).filter(|column| !column.is_empty())
}

impl SourceName {
    /// Whether files of this kind can have a validation split of their own.
    pub fn may_have_validation(self) -> bool {
        matches!(self, Self::Folder | Self::LabelsCsv | Self::Webdataset | Self::Imagenet | Self::Webvision)
    }
}

impl Labels {
    /// How the dataset is split.
    pub fn plan(&self) -> SplitPlan {
        let labels = self.count;
        SplitPlan {
            seed: Seed(self.seed),
            rule: match self.keep {
                Keep::PerClass => Rule::PerClass { labels },
                Keep::Total => Rule::Total { labels },
                Keep::Share => Rule::Fraction { share: self.share },
                Keep::All => Rule::Fraction { share: 1.0 },
                Keep::Given => Rule::Given,
            },
            labelled: self.from.clone(),
            unlabelled: self.unlabelled_from.clone(),
            include_labelled: self.include_labelled,
            validation: self.validation,
        }
    }
}
