//! Detects the format of a dataset from its file names.

use std::fs;
use std::path::Path;

use calmix::train::recipe::SourceName;

/// Names that only one format has; the first match wins.
const MARKS: &[(&str, SourceName)] = &[
    ("data_batch_1.bin", SourceName::Cifar10),
    ("cifar-10-batches-bin", SourceName::Cifar10),
    ("fine_label_names.txt", SourceName::Cifar100),
    ("cifar-100-binary", SourceName::Cifar100),
    ("extra_32x32.mat", SourceName::Svhn),
    ("train_32x32.mat", SourceName::SvhnNoExtra),
    ("train_X.bin", SourceName::Stl10),
    ("stl10_binary", SourceName::Stl10),
    ("labels.csv", SourceName::LabelsCsv),
    ("metadata.csv", SourceName::LabelsCsv),
];

/// Whether the format is for the user's own images, not that of a published dataset.
pub(crate) fn is_own(source: SourceName) -> bool {
    matches!(source, SourceName::Folder | SourceName::LabelsCsv | SourceName::Webdataset)
}

/// The format of the files in `folder`; a folder of images if nothing else matches.
pub(crate) fn detect(folder: &Path) -> SourceName {
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
        // Both datasets have the same file names and formats.
        let fashion = folder.to_string_lossy().to_lowercase().contains("fashion");
        return if fashion { SourceName::FashionMnist } else { SourceName::Mnist };
    }
    if names.iter().any(|name| Path::new(name).extension().is_some_and(|extension| extension == "tar")) {
        return SourceName::Webdataset;
    }
    SourceName::Folder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_tell_the_format() {
        for (folder, file, expected) in [
            ("a", "data_batch_1.bin", SourceName::Cifar10),
            ("a", "train-images-idx3-ubyte.gz", SourceName::Mnist),
            ("Fashion-MNIST", "train-images-idx3-ubyte", SourceName::FashionMnist),
            ("a", "shard-000.tar", SourceName::Webdataset),
            ("a", "labels.csv", SourceName::LabelsCsv),
            ("a", "cats", SourceName::Folder),
        ] {
            let temp = tempfile::tempdir().unwrap();
            let folder = temp.path().join(folder);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join(file), "").unwrap();
            assert_eq!(detect(&folder), expected, "{file}");
        }
    }
}
