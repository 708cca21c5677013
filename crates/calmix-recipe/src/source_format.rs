//! Detects the format of a dataset from its file names and the columns of Parquet files.

use std::fs;
use std::path::Path;

use calmix_data::cloud::CloudUrl;
use calmix_data::source::parquet_images::has_images;
use calmix_data::source::vectors::has_vectors;
use calmix_data::source::{has_images_in_folders, has_one_image_folder, labels_csv};

use crate::SourceName;

/// File names that are unique to one format; the first match wins.
const MARKS: &[(&str, SourceName)] = &[
    ("data_batch_1.bin", SourceName::Cifar10),
    ("cifar-10-batches-bin", SourceName::Cifar10),
    ("fine_label_names.txt", SourceName::Cifar100),
    ("cifar-100-binary", SourceName::Cifar100),
    ("extra_32x32.mat", SourceName::Svhn),
    ("train_32x32.mat", SourceName::SvhnNoExtra),
    ("train_X.bin", SourceName::Stl10),
    ("stl10_binary", SourceName::Stl10),
];

/// Returns whether the format is for the user's own images or vectors, rather than a published dataset.
pub fn is_own_format(source: SourceName) -> bool {
    matches!(
        source,
        SourceName::Folder
            | SourceName::LabelsCsv
            | SourceName::Webdataset
            | SourceName::Parquet
            | SourceName::Vectors
    )
}

/// Detects the format of the files in `folder`; a folder of images if nothing else matches. If the user names columns, the
/// format has a list of labels. A single file holds vectors, and a URL shards.
pub fn detect_source(folder: &Path, names_columns: bool) -> SourceName {
    if CloudUrl::is_url(folder) {
        return SourceName::Webdataset;
    }
    if folder.is_file() {
        return SourceName::Vectors;
    }
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
    // A list without labels, or an archive, does not affect several folders of images beside it. It does affect a single
    // folder: its columns have unusual names, and the reader of lists tells the user to set them.
    let in_folders = has_images_in_folders(folder);
    // Parquet files may also hold vectors, so their content decides.
    if !in_folders && !labels_csv::has_list(folder) && has_images(folder) {
        return SourceName::Parquet;
    }
    if !in_folders && has_vectors(folder) && !labels_csv::has_list(folder) {
        return SourceName::Vectors;
    }
    let needs_list = || !in_folders || has_one_image_folder(folder);
    if names_columns || labels_csv::has_labels(folder) || (labels_csv::has_list(folder) && needs_list()) {
        return SourceName::LabelsCsv;
    }
    if !in_folders && names.iter().any(|name| name.to_lowercase().ends_with(".tar")) {
        return SourceName::Webdataset;
    }
    SourceName::Folder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_tell_the_format() {
        for (folder, files, expected) in [
            ("a", ["data_batch_1.bin", "b"], SourceName::Cifar10),
            ("a", ["train-images-idx3-ubyte.gz", "b"], SourceName::Mnist),
            ("Fashion-MNIST", ["train-images-idx3-ubyte", "b"], SourceName::FashionMnist),
            ("a", ["shard-000.tar", "b"], SourceName::Webdataset),
            ("a", ["backup.tar", "cats/1.jpg"], SourceName::Folder),
            ("a", ["labels.csv", "1.jpg"], SourceName::LabelsCsv),
            ("a", ["labels.csv", "img/1.jpg"], SourceName::LabelsCsv),
            ("a", ["labels.csv", "all/cats/1.jpg"], SourceName::Folder),
            ("a", ["cats", "b"], SourceName::Folder),
            ("a", ["0.parquet", "b"], SourceName::Vectors),
            ("a", ["0.parquet", "cats/1.jpg"], SourceName::Folder),
            ("a", ["img_emb/img_emb_0.npy", "metadata/metadata_0.parquet"], SourceName::Vectors),
        ] {
            let temp = tempfile::tempdir().unwrap();
            let folder = temp.path().join(folder);
            for file in files.map(|file| folder.join(file)) {
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, "").unwrap();
            }
            assert_eq!(detect_source(&folder, false), expected, "{files:?}");
            let file = folder.join(files[0]);
            assert!(file.is_dir() || detect_source(&file, false) == SourceName::Vectors);
        }
    }
}
