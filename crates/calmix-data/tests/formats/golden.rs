//! Every format, pixel by pixel, and against each other.

use std::fs;
use std::path::{Path, PathBuf};

use calmix_data::manifest::PixelLayout;
use calmix_data::source::cifar::Variant;
use calmix_data::source::idx::Classes;
use calmix_data::source::{cifar, idx, stl10, svhn};
use calmix_formats::image::Image;
use calmix_formats::source_dir::Count;
use calmix_testkit::dataset_files::{self, Mat, pixel};

use super::read_back::{ReadBack, svhn_folder};

/// What every reader must make of image `n`.
fn expected(n: usize, side: usize) -> Image {
    let rows = (0..side).flat_map(|y| (0..side).map(move |x| (y, x)));
    let pixels = rows.flat_map(|(y, x)| [0, 1, 2].map(|c| pixel(n, c, y, x))).collect();
    Image::new(side as u32, side as u32, pixels).unwrap()
}

fn cifar_of(root: &Path, variant: Variant) -> ReadBack {
    let out = tempfile::tempdir().unwrap();
    let target = out.path().join("prepared");
    let prepared = cifar::prepare(root, &target, variant, Count::Any).unwrap();
    assert!(prepared.unreadable.is_empty());
    let back = ReadBack::open(root, &target);
    assert_eq!(back.header, prepared.header);
    back
}

fn svhn_of(train: &[u8]) -> ReadBack {
    let folder = svhn_folder(train);
    let target = folder.path().join("prepared");
    svhn::prepare(folder.path(), &target, false).unwrap();
    ReadBack::open(folder.path(), &target)
}

fn golden(name: &str) -> Vec<u8> {
    fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/mat/{name}.mat"))).unwrap()
}

#[test]
fn cifar10_from_the_folder_and_from_its_parent() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("cifar-10-batches-bin");
    fs::create_dir(&folder).unwrap();
    dataset_files::cifar10(&folder);
    for (root, first) in
        [(folder.as_path(), "data_batch_1.bin"), (parent.path(), "cifar-10-batches-bin/data_batch_1.bin")]
    {
        let back = cifar_of(root, Variant::Cifar10);
        assert_eq!(back.subsets(), [("train", 0, 10), ("test", 10, 2)]);
        assert_eq!(back.header.classes[..2], ["airplane", "automobile"]);
        assert_eq!(back.parts[0].path, first);
        assert!(back.parts.iter().all(|part| !part.unpacked && part.length == 2 * 3073));
        for n in 0..12 {
            assert_eq!((back.image(n), back.label(n)), (expected(n, 32), Some(n as u32 % 10)));
        }
    }
    // The dataset's own list of names, with Windows' ends of lines and the official file's empty last line.
    fs::write(folder.join("batches.meta.txt"), "a\r\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n").unwrap();
    assert_eq!(cifar_of(&folder, Variant::Cifar10).header.classes.concat(), "abcdefghij");
}

#[test]
fn cifar100_with_either_label() {
    let folder = tempfile::tempdir().unwrap();
    dataset_files::cifar100(folder.path());
    let (fine, coarse) =
        (cifar_of(folder.path(), Variant::Cifar100Fine), cifar_of(folder.path(), Variant::Cifar100Coarse));
    assert_eq!((fine.header.classes.len(), coarse.header.classes.len()), (100, 20));
    assert_eq!(fine.subsets(), [("train", 0, 3), ("test", 3, 2)]);
    for n in 0..5 {
        assert_eq!((fine.image(n), fine.label(n)), (expected(n, 32), Some(99 - n as u32)));
        assert_eq!((coarse.image(n), coarse.label(n)), (expected(n, 32), Some(n as u32 + 3)));
    }
}

#[test]
fn idx_plain_and_under_gzip() {
    // Wider than high: a reader that exchanges the sides fails.
    let (width, height) = (9, 5);
    let mut fingerprints = Vec::new();
    for packed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        dataset_files::mnist(folder.path(), packed, width, height);
        let target = folder.path().join("prepared");
        idx::prepare(folder.path(), &target, Classes::Digits).unwrap();
        let back = ReadBack::open(folder.path(), &target);
        assert_eq!(back.subsets(), [("train", 0, 3), ("test", 3, 2)]);
        assert!(back.parts.iter().all(|part| part.unpacked == packed));
        assert_eq!(back.header.classes.concat(), "0123456789");
        for n in 0..5 {
            let rows = (0..height).flat_map(|y| (0..width).map(move |x| pixel(n, 0, y, x)));
            let rgb: Vec<u8> = rows.flat_map(|grey| [grey; 3]).collect();
            let image = back.image(n);
            assert_eq!((image.width(), image.height()), (9, 5));
            assert_eq!(image.pixels(), rgb);
            assert_eq!(back.label(n), Some(n as u32));
        }
        fingerprints.push(back.header.fingerprint);
    }
    assert_eq!(fingerprints[0], fingerprints[1], "the same images and labels are the same dataset");
}

#[test]
fn stl10_with_and_without_labels() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("stl10_binary");
    fs::create_dir(&folder).unwrap();
    dataset_files::stl10(&folder);
    let target = parent.path().join("prepared");
    stl10::prepare(parent.path(), &target, Count::Any).unwrap();
    let back = ReadBack::open(parent.path(), &target);
    assert_eq!(back.subsets(), [("train", 0, 2), ("test", 2, 1), ("unlabelled", 3, 1)]);
    for n in 0..4 {
        assert_eq!((back.image(n), back.label(n)), (expected(n, 96), (n < 3).then_some(n as u32)));
    }
}

#[test]
fn svhn_as_scipy_writes_it() {
    let digits = [0, 3, 1, 9, 7];
    let five = "packed_x_y_uint8 packed_y_x_double packed_int16 packed_int32 packed_uint32 packed_int64 packed_uint64 \
                packed_float32 row among_others";
    let files = [(five, 5), ("plain_x_y_uint8 plain_y_x_double small_int8 small_uint16", 2), ("one", 1)];
    for (name, count) in
        files.iter().flat_map(|&(names, count)| names.split(' ').map(move |name| (name, count)))
    {
        let back = svhn_of(&golden(name));
        assert_eq!(back.subsets(), [("train", 0, count), ("test", count, 1)], "{name}");
        assert_eq!(back.parts[0].unpacked, !name.starts_with("plain"), "{name}");
        for (n, &digit) in digits.iter().enumerate().take(count as usize) {
            assert_eq!((back.image(n), back.label(n)), (expected(n, 32), Some(digit)), "{name}");
        }
        // Labels and images of the test file, which stays in place.
        assert_eq!((back.image(count as usize), back.label(count as usize)), (expected(0, 32), Some(4)));
    }
}

#[test]
fn svhn_in_either_order_of_bytes_and_with_doubles_stored_as_bytes() {
    for mat in [Mat::LITTLE, Mat { big: true }] {
        let doubles: Vec<u8> = [10.0_f64, 2.0]
            .iter()
            .flat_map(|label| if mat.big { label.to_be_bytes() } else { label.to_le_bytes() })
            .collect();
        let wide = mat.matrix("y", 6, &[2, 1], 9, &doubles);
        // MATLAB stores whole doubles (class 6) as bytes (type 2).
        let narrow = mat.matrix("y", 6, &[2, 1], 2, &[10, 2]);
        for labels in [wide, narrow] {
            let packed = [mat.compressed(&labels), mat.compressed(&mat.images(2))];
            for file in [mat.file(&packed), mat.file(&[mat.images(2), labels])] {
                let back = svhn_of(&file);
                for (n, label) in [(0, 0), (1, 2)] {
                    assert_eq!((back.image(n), back.label(n)), (expected(n, 32), Some(label)));
                }
            }
        }
    }
}

#[test]
fn readers_of_the_same_images_agree() {
    let folder = tempfile::tempdir().unwrap();
    dataset_files::cifar10(folder.path());
    dataset_files::stl10(folder.path());
    dataset_files::mnist(folder.path(), true, 32, 32);
    let cifar = cifar_of(folder.path(), Variant::Cifar10);
    let svhn = svhn_of(&golden("packed_x_y_uint8"));
    let (stl_target, idx_target) = (folder.path().join("stl"), folder.path().join("idx"));
    stl10::prepare(folder.path(), &stl_target, Count::Any).unwrap();
    idx::prepare(folder.path(), &idx_target, Classes::Fashion).unwrap();
    let (stl, idx) = (ReadBack::open(folder.path(), &stl_target), ReadBack::open(folder.path(), &idx_target));
    for n in 0..4 {
        let image = cifar.image(n);
        assert_eq!(image, svhn.image(n));
        // The larger image continues the smaller one to the right and below.
        let larger = stl.image(n);
        let corner: Vec<u8> =
            larger.pixels().chunks(96 * 3).take(32).flat_map(|row| &row[..96]).copied().collect();
        assert_eq!(image.pixels(), corner);
        let red = image.pixels().iter().step_by(3);
        assert!(red.eq(idx.image(n).pixels().iter().skip(2).step_by(3)));
    }
}

#[test]
fn the_golden_images_tell_layouts_apart() {
    let planes = dataset_files::planes(0, 32);
    assert_ne!(PixelLayout::PlanesByColumn.image(32, 32, &planes), Some(expected(0, 32)));
    let exchanged = [&planes[2048..], &planes[1024..2048], &planes[..1024]].concat();
    assert_ne!(PixelLayout::Planes.image(32, 32, &exchanged), Some(expected(0, 32)));
    assert_ne!(expected(0, 32), expected(1, 32));
}
