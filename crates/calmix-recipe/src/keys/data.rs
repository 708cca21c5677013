//! The keys of the dataset and of its labels.

use calmix_core::rng::Seed;
use calmix_data::shrink::DEFAULT_SIDE;
use calmix_data::source::{Cifar100Labels, FolderLayout, SourceSpec, idx, labels_csv};
use calmix_data::split::{HoldOut, Rule, SplitPlan};
use calmix_formats::labels::columns::LabelColumns;

use crate::field::limit::{AT_LEAST_ONE, POSITIVE_SHARE, SHARE, UNIT_INTERVAL, above, from};
use crate::field::{choice, section};

section! {
    /// The dataset.
    Data {
        /// The format of the dataset's files.
        fixed source: SourceName = SourceName::Folder;
        /// The folder of the dataset's files, or the URL of its shards. No recipe sets it: give it in a file, in the
        /// environment or with `--set`.
        free path: String = String::new();
        /// The folder that `calmix prepare` wrote; if empty, the run prepares the dataset in its own folder first.
        free prepared: String = String::new();
        /// How folder names are read: as splits or as classes.
        #[when(source is SourceName::Folder)]
        fixed layout: LayoutName = LayoutName::Auto;
        /// The level of folders that names the group of an image, such as its patient, video or site: 2 for
        /// `CLASS/GROUP/image.jpg`, 1 for `GROUP/CLASS/image.jpg` (with `layout = "nested"`), 0 for none. The folders `train`,
        /// `val` and `test` are not counted, and `unlabelled` counts as a class. Folders of one name are one group. An image
        /// that is not in such a folder is a group of its own. Labels in files have a column `group` instead.
        #[when(source is SourceName::Folder)]
        fixed groups: u32 = 0, from(0.0).to(16.0);
        /// The file of the vectors' labels, a CSV or an `.npy`; if empty, the labels are in the file of the vectors.
        #[when(source is SourceName::Vectors)]
        free labels: String = String::new();
        /// Further sets of features of the same samples, such as those of another backbone: files or folders of vectors, with the
        /// same ids as the first set, or else the same rows.
        #[when(source is SourceName::Vectors)]
        free more_features: Vec<String> = Vec::new();
        /// The column, array or tensor that holds the vectors; if empty, it is found by a usual name.
        #[when(source is SourceName::Vectors)]
        fixed vector_column: String = String::new();
        /// The column with the image's path, or with the id of a vector; in `parquet` the column with the image itself. If empty,
        /// it is found by a usual name.
        #[when(source is SourceName::LabelsCsv | SourceName::Parquet | SourceName::Vectors)]
        fixed path_column: String = String::new();
        /// The column with the class; if empty, it is found by a usual name.
        #[when(source is SourceName::LabelsCsv | SourceName::Parquet | SourceName::Vectors)]
        fixed label_column: String = String::new();
        /// Whether to train on images without a label: in `labels-csv` those that no row names (otherwise they are left
        /// out), in `webdataset` those without a class (otherwise they are an error).
        #[when(source is SourceName::LabelsCsv | SourceName::Webdataset)]
        fixed unlabelled: bool = true;
        /// The shorter side, in pixels, to which larger images are shrunk when the dataset is prepared; 0 keeps their size.
        /// With 512, a dataset prepared with another value is accepted too.
        #[when(source is SourceName::Folder | SourceName::LabelsCsv)]
        fixed shrink: u32 = DEFAULT_SIDE, from(0.0).to(16_384.0);
        /// The order of unlabelled samples: over all of them, or by block of shards, so that each shard is needed once per epoch.
        #[when(source is SourceName::Webdataset)]
        fixed order: OrderName = OrderName::Samples;
        /// The number of shards (`.tar`) that are shuffled together.
        #[when(order is OrderName::Blocks)]
        fixed block: u32 = 8, AT_LEAST_ONE;
        /// The subset to evaluate models on; empty if there is none.
        fixed test: String = "test".into();
        /// The mean of red, green and blue, subtracted from pixel values between 0 and 1.
        fixed mean: [f64; 3] = [0.485, 0.456, 0.406], SHARE;
        /// The standard deviation of red, green and blue, by which pixel values are divided after the mean is subtracted.
        fixed std: [f64; 3] = [0.229, 0.224, 0.225], above(0.0);
    }
}

choice! {
    /// The format of a dataset's files.
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
        /// SVHN, cropped digits, with the extra images.
        Svhn = "svhn",
        /// SVHN without the extra images.
        SvhnNoExtra = "svhn-no-extra",
        /// STL-10, binary version, with the unlabelled images.
        Stl10 = "stl10",
        /// A folder for each class, and one for unlabelled images.
        Folder = "folder",
        /// A folder of images with `labels.csv` or `metadata.csv`.
        LabelsCsv = "labels-csv",
        /// Tar shards in WebDataset format.
        Webdataset = "webdataset",
        /// Images in Parquet files, as on the Hub of Hugging Face.
        Parquet = "parquet",
        /// ImageNet in its folder layout.
        Imagenet = "imagenet",
        /// WebVision with its file lists.
        Webvision = "webvision",
        /// Vectors instead of images: `.npy`, `.npz`, Parquet, safetensors, CSV, or a folder of clip-retrieval.
        Vectors = "vectors",
    }
}

choice! {
    /// The order of unlabelled samples.
    OrderName {
        /// All samples are shuffled together, in a new order every epoch.
        Samples = "samples",
        /// The shards come in a new order every epoch, and the samples of `block` shards at a time are shuffled together.
        /// Datasets at a URL need it.
        Blocks = "blocks",
    }
}

choice! {
    /// How the folders of a dataset are read.
    LayoutName {
        /// Detected from names and contents; an error if the layout is ambiguous.
        Auto = "auto",
        /// Every folder is a class, whatever its name, except `unlabelled`.
        Classes = "classes",
        /// `train`, `val`, `test` and `unlabelled` are splits; without `train`, the other folders are its classes.
        Splits = "splits",
        /// Folders are groups of classes, and the folders in them are the classes.
        Nested = "nested",
    }
}

section! {
    /// Which labels are kept; all others are dropped.
    Labels {
        /// How the labels to keep are chosen.
        fixed keep: Keep = Keep::PerClass;
        /// The number of labels, per class or in total.
        #[when(keep is Keep::PerClass | Keep::Total)]
        fixed count: u64 = 4, AT_LEAST_ONE;
        /// The share of the labels of each class.
        #[when(keep is Keep::Share)]
        fixed share: f64 = 0.1, POSITIVE_SHARE;
        /// The path of a `split.json` that lists the labels to keep.
        #[when(keep is Keep::Given)]
        free file: String = String::new();
        /// The seed of the draw: with the same seed, every run on the dataset keeps the same labels.
        fixed seed: u64 = 0;
        /// The subsets to take labels from.
        fixed from: Vec<String> = vec!["train".into()];
        /// The subsets to take unlabelled samples from; their labels are ignored.
        fixed unlabelled_from: Vec<String> = vec!["train".into()];
        /// The number of unlabelled samples to train on; 0 for all. Which samples are used does not depend on the seed.
        fixed unlabelled_count: u64 = 0;
        /// The path of a list of the unlabelled samples to train on, instead of all: a Parquet or CSV file with the column
        /// `path`, as `calmix predict` writes it. `calmix train --unlabelled` sets it. Whether labelled samples are used as
        /// unlabelled ones too does not depend on it.
        fixed unlabelled_file: String = String::new();
        /// Whether unlabelled samples are left out if the same image or vector is in the subset `dataset.test`. `calmix prepare`
        /// reports such copies; nearly all test images of STL-10 have one.
        fixed leave_out_test_copies: bool = false;
        /// Whether labelled samples are also used as unlabelled samples.
        fixed include_labelled: bool = true;
        /// Whether labels of one class that are near-duplicates, such as frames of a burst or crops of one photo, are found and
        /// put into one fold: by the distances between their features, and images also by their pixels. Groups that you name (a
        /// column `group`, `dataset.groups`) are used instead.
        fixed link_copies: bool = true;
        /// Weights of classes in the training of heads on one vector per sample. Calibration, guarantees and the choice of the head are
        /// about the labels as they are.
        fixed class_weight: ClassWeight = ClassWeight::None;
        /// The share of the labels held out for validation, or a rule; every class keeps at least one label. If the dataset
        /// has its own validation split, that split is used and no labels are held out. If samples are in groups, whole groups are
        /// held out, and shares count groups.
        fixed validation: HoldOut = HoldOut::NONE, UNIT_INTERVAL;
    }
}

choice! {
    /// How the labels to keep are chosen.
    Keep {
        /// `count` labels per class.
        PerClass = "per-class",
        /// `count` labels in total, spread evenly over the classes.
        Total = "total",
        /// The share `share` of the labels of each class.
        Share = "share",
        /// Every label.
        All = "all",
        /// Exactly the labels listed in `file`.
        Given = "given",
    }
}

choice! {
    /// Weights of classes in training.
    ClassWeight {
        /// Every label has its own weight, which is 1 unless a column `weight` gives another.
        None = "none",
        /// The labels of each class have the same weight together, multiplied by their own.
        Balanced = "balanced",
    }
}

impl Data {
    /// Returns the format of the files, as calmix-data's `prepare` takes it.
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
                groups: self.groups,
            },
            SourceName::LabelsCsv => SourceSpec::LabelsCsv {
                unlisted: if self.unlabelled {
                    labels_csv::Unlisted::Unlabelled
                } else {
                    labels_csv::Unlisted::LeaveOut
                },
                columns: self.columns(),
                shrink: self.shrink,
            },
            SourceName::Webdataset => SourceSpec::Webdataset { unlabelled: self.unlabelled },
            SourceName::Parquet => SourceSpec::Parquet { columns: self.columns() },
            SourceName::Imagenet => SourceSpec::Imagenet,
            SourceName::Webvision => SourceSpec::Webvision,
            SourceName::Vectors => SourceSpec::Vectors {
                labels: named(&self.labels),
                more_features: self.more_features.clone(),
                vector_column: named(&self.vector_column),
                columns: self.columns(),
            },
        }
    }

    fn columns(&self) -> LabelColumns {
        LabelColumns { path: named(&self.path_column), label: named(&self.label_column) }
    }
}

fn named(column: &str) -> Option<String> {
    Some(column.to_owned()).filter(|column| !column.is_empty())
}

impl SourceName {
    /// Returns whether a dataset in this format can have its own validation split.
    pub fn may_have_validation(self) -> bool {
        matches!(
            self,
            Self::Folder
                | Self::LabelsCsv
                | Self::Webdataset
                | Self::Parquet
                | Self::Imagenet
                | Self::Webvision
                | Self::Vectors
        )
    }
}

impl Labels {
    /// Returns how the dataset is split into labelled, unlabelled and validation samples.
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
