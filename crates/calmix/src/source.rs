//! What the files of a dataset are, told by their names.

use std::fs;
use std::path::Path;

use calmix::train::recipe::Source;

/// Names that only one kind of dataset has; of several the first counts.
const MARKS: &[(&str, Source)] = &[
    ("data_batch_1.bin", Source::Cifar10),
    ("cifar-10-batches-bin", Source::Cifar10),
    ("fine_label_names.txt", Source::Cifar100),
    ("cifar-100-binary", Source::Cifar100),
    ("extra_32x32.mat", Source::Svhn),
    ("train_32x32.mat", Source::SvhnNoExtra),
    ("train_X.bin", Source::Stl10),
    ("stl10_binary", Source::Stl10),
    ("labels.csv", Source::LabelsCsv),
    ("metadata.csv", Source::LabelsCsv),
];

/// Whether these are images of one's own, which no recipe knows the files of.
pub(crate) fn is_own(source: Source) -> bool {
    matches!(source, Source::Folder | Source::LabelsCsv | Source::Webdataset)
}

/// What the files in `folder` are. What has no mark of its own is a folder of images.
pub(crate) fn guess(folder: &Path) -> Source {
    let names: Vec<String> = fs::read_dir(folder)
        .map(|entries| {
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        })
        .unwrap_or_default();
    let has = |mark: &str| names.iter().any(|name| name == mark);
    if let Some((_, source)) = MARKS.iter().find(|(mark, _)| has(mark)) {
        return *source;
    }
    if names.iter().any(|name| name.starts_with("train-images-idx3-ubyte")) {
        // The files of both are alike and do not say.
        let fashion = folder.to_string_lossy().to_lowercase().contains("fashion");
        return if fashion { Source::FashionMnist } else { Source::Mnist };
    }
    if names.iter().any(|name| Path::new(name).extension().is_some_and(|extension| extension == "tar")) {
        return Source::Webdataset;
    }
    Source::Folder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_files_are() {
        for (folder, file, expected) in [
            ("a", "data_batch_1.bin", Source::Cifar10),
            ("a", "train-images-idx3-ubyte.gz", Source::Mnist),
            ("Fashion-MNIST", "train-images-idx3-ubyte", Source::FashionMnist),
            ("a", "shard-000.tar", Source::Webdataset),
            ("a", "labels.csv", Source::LabelsCsv),
            ("a", "cats", Source::Folder),
        ] {
            let temp = tempfile::tempdir().unwrap();
            let folder = temp.path().join(folder);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join(file), "").unwrap();
            assert_eq!(guess(&folder), expected, "{file}");
        }
    }
}
