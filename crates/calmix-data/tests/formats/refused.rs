//! Files that are not what they should be: what is said names the file, the place and what to try.

use std::fs;
use std::path::Path;

use calmix_data::error::DataError;
use calmix_data::manifest::Prepared;
use calmix_data::source::cifar::Variant;
use calmix_data::source::idx::Classes;
use calmix_data::source::{cifar, stl10, svhn};
use calmix_formats::mat::MatFile;
use calmix_formats::source_dir::Count;
use calmix_testkit::dataset_files::{self, Mat, idx};

/// The sentence with the folder cut out; nothing may be left where the dataset would stand.
fn said(folder: &Path, prepare: impl Fn(&Path, &Path) -> Result<Prepared, DataError>) -> String {
    let out = tempfile::tempdir().unwrap();
    let sentence = prepare(folder, &out.path().join("prepared")).unwrap_err().to_string();
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
    sentence.replace(&format!("{}/", folder.display()), "").replace(&folder.display().to_string(), "ROOT")
}

fn cifar10(root: &Path, target: &Path) -> Result<Prepared, DataError> {
    cifar::prepare(root, target, Variant::Cifar10, Count::Any)
}

fn digits(root: &Path, target: &Path) -> Result<Prepared, DataError> {
    calmix_data::source::idx::prepare(root, target, Classes::Digits)
}

fn stl(root: &Path, target: &Path) -> Result<Prepared, DataError> {
    stl10::prepare(root, target, Count::Any)
}

fn overwrite(path: &Path, at: usize, byte: u8) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] = byte;
    fs::write(path, bytes).unwrap();
}

#[test]
fn cifar() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    assert_eq!(
        said(folder.path(), cifar10),
        "ROOT: none of data_batch_1.bin, data_batch_2.bin, data_batch_3.bin, data_batch_4.bin, \
         data_batch_5.bin, test_batch.bin is here or in cifar-10-batches-bin; \
         pass the folder that contains these files, unpacked"
    );
    dataset_files::cifar10(folder.path());
    assert_eq!(
        said(folder.path(), |root, target| cifar::prepare(root, target, Variant::Cifar10, Count::Official)),
        "data_batch_1.bin: expected 30730000 bytes (10000 samples of 3073), found 6146; \
         download the archive again and unpack all of it"
    );
    overwrite(&path("data_batch_4.bin"), 3073, 10);
    assert_eq!(
        said(folder.path(), cifar10),
        "data_batch_4.bin, byte 3073: label 10, expected 0 to 9; \
         check that the file belongs to this dataset, or download the archive again"
    );
    fs::remove_file(path("data_batch_2.bin")).unwrap();
    assert!(
        said(folder.path(), cifar10).starts_with("ROOT: data_batch_2.bin missing; expected data_batch_1")
    );
    fs::create_dir(path("data_batch_2.bin")).unwrap();
    assert_eq!(said(folder.path(), cifar10), "data_batch_2.bin: not a regular file");

    let hundred = tempfile::tempdir().unwrap();
    dataset_files::cifar100(hundred.path());
    overwrite(&hundred.path().join("test.bin"), 3074, 20);
    for variant in [Variant::Cifar100Fine, Variant::Cifar100Coarse] {
        let said = said(hundred.path(), |root, target| cifar::prepare(root, target, variant, Count::Any));
        assert!(said.starts_with("test.bin, byte 3074: label 20, expected 0 to 19"), "{said}");
    }
}

#[test]
fn lists_of_names() {
    let folder = tempfile::tempdir().unwrap();
    dataset_files::cifar10(folder.path());
    let names = folder.path().join("batches.meta.txt");
    for (text, problem) in [
        ("a\nb\n", "expected 10 class names, found 2"),
        ("a\nb\nc\nd\ne\nf\ng\nh\ni\na\n", "the class name \"a\" occurs twice"),
        ("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\u{1}\n", "the class name \"j\\u{1}\" contains control characters"),
    ] {
        fs::write(&names, text).unwrap();
        let said = said(folder.path(), cifar10);
        assert!(said.starts_with(&format!("batches.meta.txt: {problem}")), "{said}");
    }
    fs::write(&names, [0xff]).unwrap();
    assert!(said(folder.path(), cifar10).contains("expected UTF-8"));
    fs::write(&names, vec![b'a'; 100_000]).unwrap();
    assert!(said(folder.path(), cifar10).contains("100000 bytes, expected at most 65536"));
}

#[test]
fn a_link_out_of_the_folder() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    dataset_files::cifar10(folder.path());
    let (inside, outside) = (folder.path().join("test_batch.bin"), elsewhere.path().join("secret"));
    fs::rename(&inside, &outside).unwrap();
    std::os::unix::fs::symlink(&outside, &inside).unwrap();
    assert!(said(folder.path(), cifar10).starts_with("test_batch.bin: a link that leads out"));
}

#[test]
fn stl10_files() {
    let folder = tempfile::tempdir().unwrap();
    dataset_files::stl10(folder.path());
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("train_y.bin", &[1, 11]);
    assert!(said(folder.path(), stl).starts_with("train_y.bin, byte 1: label 11, expected 1 to 10"));
    write("train_y.bin", &[0, 1]);
    assert!(said(folder.path(), stl).starts_with("train_y.bin, byte 0: label 0, expected 1 to 10"));
    write("train_y.bin", &[1]);
    assert!(said(folder.path(), stl).starts_with("train_y.bin: expected 2 bytes (2 samples of 1), found 1"));
}

#[test]
fn idx_files() {
    let folder = tempfile::tempdir().unwrap();
    assert!(said(folder.path(), digits).contains("t10k-labels-idx1-ubyte.gz is here or in MNIST/raw"));
    dataset_files::mnist(folder.path(), true, 4, 3);
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    let (labels, images) = ("train-labels-idx1-ubyte", "train-images-idx3-ubyte");
    // A plain file is preferred to one under gzip.
    for (bytes, problem) in [
        (idx(&[3], &[0, 1, 10]), ", byte 10: label 10, expected 0 to 9"),
        (idx(&[2], &[0, 1]), ": 2 labels for 3 images"),
        (idx(&[3], &[0, 1]), ", byte 8: its header declares 11 bytes, but the file has 10"),
        (idx(&[3, 1], &[0, 1, 2]), ", byte 4: expected 00 00 08 01, found [00, 00, 08, 02]"),
    ] {
        write(labels, &bytes);
        let said = said(folder.path(), digits);
        assert!(said.starts_with(&format!("{labels}{problem}")), "{said}");
    }
    write("train-labels-idx1-ubyte.gz", &dataset_files::gzip(&idx(&[3], &[0, 10, 1])));
    fs::remove_file(folder.path().join(labels)).unwrap();
    assert!(said(folder.path(), digits).contains(".gz, byte 9 when unpacked: label 10"));
    dataset_files::mnist(folder.path(), true, 4, 3);
    for (bytes, problem) in [
        (
            idx(&[3, 4, 3], &[0; 36]),
            "t10k-images-idx3-ubyte.gz: images of 4×3 pixels, but the others have 3×4",
        ),
        (idx(&[3, 0, 3], &[]), "train-images-idx3-ubyte: images of 3×0 pixels, expected 1 to 4096 per side"),
        (idx(&[0, 3, 4], &[]), "train-images-idx3-ubyte: the file has no images"),
        (idx(&[u32::MAX; 3], &[]), "train-images-idx3-ubyte, byte 16: the dimensions"),
    ] {
        write(images, &bytes);
        let said = said(folder.path(), digits);
        assert!(said.starts_with(problem), "{said}");
    }
    fs::remove_file(folder.path().join(images)).unwrap();
    fs::remove_file(folder.path().join(format!("{images}.gz"))).unwrap();
    assert!(
        said(folder.path(), digits).contains("put train-images-idx3-ubyte or train-images-idx3-ubyte.gz")
    );
}

/// What is said of this training file of SVHN.
pub(crate) fn svhn_said(train: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("train_32x32.mat"), train).unwrap();
    fs::write(folder.path().join("test_32x32.mat"), train).unwrap();
    said(folder.path(), |root, target| svhn::prepare(root, target, false))
}

#[test]
fn svhn_files() {
    let mat = Mat::LITTLE;
    let (images, labels) = (mat.images(2), mat.labels(&[1, 10]));
    let no_zero = mat.file(&[images.clone(), mat.labels(&[1, 0])]);
    // 128 of the header, 72 + 6144 of X, 64 of y up to its values, and one label.
    assert!(svhn_said(&no_zero).contains(", variable y, byte 6409: label 0, expected 1 to 10"));
    let half = mat.matrix("y", 6, &[2, 1], 9, &[1.0_f64, 2.5].map(f64::to_le_bytes).concat());
    let packed = mat.file(&[mat.compressed(&half), mat.compressed(&images)]);
    let said = svhn_said(&packed);
    assert!(said.contains("variable y, byte 72 of the data compressed at byte 128: label 2.5"), "{said}");
    for (elements, problem) in [
        (vec![labels.clone()], "there is no variable \"X\"; expected X and y"),
        (vec![images.clone()], "no variable \"y\""),
        (vec![images.clone(), mat.labels(&[1])], "y is [1, 1], expected [2, 1] for 2 images"),
        (vec![mat.matrix("X", 9, &[32, 32, 4], 2, &[0; 4096]), labels.clone()], "X is [32, 32, 4] of U8"),
        (vec![mat.matrix("X", 9, &[32, 32, 3, 0], 2, &[]), labels.clone()], "X is [32, 32, 3, 0] of U8"),
        (vec![mat.matrix("X", 8, &[32, 32, 3], 1, &[0; 3072]), labels.clone()], "X is [32, 32, 3] of I8"),
    ] {
        let said = svhn_said(&mat.file(&elements));
        assert!(said.contains(problem), "{said}");
    }
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        fs::write(folder.path().join(name), mat.file(&[images.clone(), labels.clone()])).unwrap();
    };
    let prepare = |extra| self::said(folder.path(), |root, target| svhn::prepare(root, target, extra));
    write("extra_32x32.mat");
    assert!(prepare(false).contains("train_32x32.mat, test_32x32.mat missing"));
    fs::remove_file(folder.path().join("extra_32x32.mat")).unwrap();
    ["train_32x32.mat", "test_32x32.mat"].into_iter().for_each(write);
    assert!(prepare(true).contains("extra_32x32.mat missing"));
}

#[test]
fn mat_files_of_other_versions_and_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mat");
    let golden =
        |name: &str| fs::read(format!("{}/tests/golden/mat/{name}.mat", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut seven_three = Mat::LITTLE.file(&[]);
    seven_three[124..126].copy_from_slice(&[0, 2]);
    for (bytes, problem) in [
        (seven_three, "7.3 (HDF5) file; save it again in MATLAB with save(…, '-v7')"),
        (b"\x89HDF\r\n\x1a\nrest".to_vec(), "7.3 (HDF5) file"),
        (b"MATLAB 7.3 MAT-file, Platform".to_vec(), "7.3 (HDF5) file"),
        (golden("version_4"), "shorter than a header"),
        (vec![0; 200], "not a MATLAB file of version 5"),
        (Vec::new(), "shorter than a header"),
    ] {
        fs::write(&path, bytes).unwrap();
        let said = MatFile::open(&path).unwrap_err().to_string();
        assert!(said.contains(problem), "{said}");
    }
    for (name, variable, problem) in [
        ("complex", "y", "not an array of real numbers"),
        ("among_others", "note", "not an array of real numbers"),
        ("among_others", "cells", "not an array of real numbers"),
    ] {
        fs::write(&path, golden(name)).unwrap();
        let said = MatFile::open(&path).unwrap().variable(variable).unwrap_err().to_string();
        assert!(said.contains(problem), "{said}");
    }
    assert!(MatFile::open(&path).unwrap().variable("absent").unwrap().is_none());
    // More can be asked for than there is, and less.
    let mut number = MatFile::open(&path).unwrap().variable("long_name_of_one").unwrap().unwrap();
    assert_eq!((number.dims(), number.values()), (&[1, 1][..], 1));
    assert_eq!(number.number().unwrap(), 2.0);
    assert!(number.number().unwrap_err().to_string().contains("has 0 values left, but 1 were requested"));
    let labels = MatFile::open(&path).unwrap().variable("y").unwrap().unwrap();
    assert!(labels.finish().unwrap_err().to_string().contains("5 values of y were not read"));
}
