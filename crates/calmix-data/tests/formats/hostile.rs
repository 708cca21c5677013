//! Files that are cut, damaged or made to do harm: refused, without a panic, in little memory.

use std::fs;
use std::path::Path;

use calmix_data::manifest::Header;
use calmix_data::source::cifar::Variant;
use calmix_data::source::idx::Classes;
use calmix_data::source::{cifar, idx, stl10, svhn};
use calmix_formats::source_dir::Count;
use calmix_testkit::dataset_files::{self, Mat};
use calmix_testkit::memory;

use super::read_back::svhn_folder;
use super::refused::svhn_said;

/// Cuts `file` at every byte from its end and expects every attempt to be refused.
fn cut_everywhere(folder: &Path, file: &str, refused: impl Fn() -> bool) {
    let path = folder.join(file);
    let whole = fs::read(&path).unwrap();
    let file_to_cut = fs::OpenOptions::new().write(true).open(&path).unwrap();
    for length in (0..whole.len()).rev() {
        file_to_cut.set_len(length as u64).unwrap();
        assert!(refused(), "{file} cut to {length} of {} bytes", whole.len());
    }
    fs::write(&path, &whole).unwrap();
    assert!(!refused(), "{file} whole");
}

#[test]
fn files_cut_at_every_byte() {
    let folder = tempfile::tempdir().unwrap();
    let out = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut made = 0..;
    let mut target = || out.path().join(made.next().map_or_else(String::new, |n: u32| n.to_string()));

    dataset_files::cifar100(folder);
    // One sample, so that no cut falls between two: a cut there is what `Count::Official` is for.
    fs::write(folder.join("train.bin"), [vec![0, 0], dataset_files::planes(0, 32)].concat()).unwrap();
    let hundred = target();
    cut_everywhere(folder, "train.bin", || {
        cifar::prepare(folder, &hundred, Variant::Cifar100Fine, Count::Any).is_err()
    });
    dataset_files::stl10(folder);
    let stl = target();
    cut_everywhere(folder, "train_y.bin", || stl10::prepare(folder, &stl, Count::Any).is_err());
    let stl = target();
    cut_everywhere(folder, "test_X.bin", || stl10::prepare(folder, &stl, Count::Any).is_err());
    for packed in [true, false] {
        dataset_files::mnist(folder, packed, 5, 3);
        for file in ["train-images-idx3-ubyte", "t10k-labels-idx1-ubyte"] {
            let file = if packed { format!("{file}.gz") } else { file.to_owned() };
            let digits = target();
            cut_everywhere(folder, &file, || idx::prepare(folder, &digits, Classes::Digits).is_err());
        }
    }
    let mat = Mat::LITTLE;
    let (images, labels) = (mat.images(1), mat.labels(&[10]));
    let plain = mat.file(&[labels.clone(), images.clone()]);
    let packed = mat.file(&[mat.compressed(&images), mat.compressed(&labels)]);
    fs::write(folder.join("test_32x32.mat"), &plain).unwrap();
    for bytes in [plain, packed] {
        fs::write(folder.join("train_32x32.mat"), bytes).unwrap();
        let numbers = target();
        cut_everywhere(folder, "train_32x32.mat", || svhn::prepare(folder, &numbers, false).is_err());
    }
}

/// The prepared header of this training file.
fn svhn_of(train: &[u8]) -> Option<Header> {
    let folder = svhn_folder(train);
    svhn::prepare(folder.path(), &folder.path().join("prepared"), false).ok().map(|prepared| prepared.header)
}

#[test]
fn a_flipped_bit_is_found_or_changes_nothing() {
    let mat = Mat::LITTLE;
    let whole = mat.file(&[mat.compressed(&mat.images(1)), mat.compressed(&mat.labels(&[1]))]);
    let header = svhn_of(&whole).unwrap();
    let mut harmless = 0;
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        if let Some(other) = svhn_of(&damaged) {
            assert_eq!(other, header, "byte {at}");
            harmless += 1;
        }
    }
    // The header's free text of 124 bytes says nothing; deflate has a few bits of no consequence, such as those
    // that fill its last byte.
    assert!((124..124 + 8).contains(&harmless), "{harmless} flips of {} made no difference", whole.len());
}

/// A matrix element with its length overwritten.
fn with_length(mut element: Vec<u8>, bytes: u32) -> Vec<u8> {
    element[4..8].copy_from_slice(&bytes.to_le_bytes());
    element
}

#[test]
fn mat_elements_with_false_lengths() {
    let mat = Mat::LITTLE;
    let labels = mat.labels(&[1]);
    let images = mat.images(1);
    let twice = mat.compressed(&mat.compressed(&images));
    let largest = i32::MAX as u32;
    let overflow = mat.matrix("X", 9, &[largest; 5], 2, &[0; 8]);
    let negative = mat.matrix("X", 9, &[32, 32, 3, u32::MAX], 2, &[0; 8]);
    let many_dims = mat.matrix("X", 9, &[1; 40], 2, &[0; 1]);
    let long_name = mat.matrix(&"X".repeat(300), 9, &[1, 1], 2, &[0; 1]);
    let text = mat.matrix("X", 9, &[1, 1], 17, &[0; 1]);
    let mut fat_head = images.clone();
    // The head of X's values, after those of the matrix (8), flags (16), dimensions (24) and name (16): nine bytes
    // that would stand in a place for four.
    fat_head[64..68].copy_from_slice(&[2, 0, 9, 0]);
    let trailing = [images.clone(), vec![0; 8]].concat();
    let longer = with_length(trailing, images.len() as u32);
    for (element, problem) in [
        (twice, "compressed data inside compressed data"),
        (overflow, "2147483647, 2147483647] of U8, but has 8 bytes"),
        (negative, "a negative dimension"),
        (many_dims, "expected 2 to 32 dimensions"),
        (long_name, "expected the name of an array"),
        (text, "\"X\" holds elements of type 17, not numbers"),
        (fat_head, "with 9 bytes in its header, expected at most 4"),
        (longer, "8 bytes after the last value"),
        (with_length(images.clone(), u32::MAX), "expected an element of 4294967295 bytes, found"),
        (with_length(images.clone(), 8), "expected 8 more bytes, but the variable has 0"),
        (mat.element(3, &[0; 8]), "an element of type 3, expected 14 or 15"),
        (mat.element(15, &[0; 8]), "the compressed data is damaged"),
        (mat.compressed(&mat.element(2, &[0; 8])), "an element of type 2, expected a matrix (14)"),
        (mat.compressed(&with_length(images.clone(), 100)), "\"X\", found"),
        (mat.compressed(&[images.clone(), vec![0; 8]].concat()), "bytes after the matrix"),
    ] {
        for elements in [[element.clone(), labels.clone()], [labels.clone(), element]] {
            let said = svhn_said(&mat.file(&elements));
            assert!(said.contains(problem), "{problem:?} expected: {said}");
        }
    }
    let crowd: Vec<Vec<u8>> = (0..1_001).map(|_| mat.matrix("z", 9, &[1, 1], 2, &[0])).collect();
    assert!(svhn_said(&mat.file(&crowd)).contains("among the first 1000 variables"));
}

/// `count` zeros under zlib or gzip after `head`, without holding them.
fn packed_zeros<W: std::io::Write>(mut encoder: W, head: &[u8], count: u64) -> W {
    encoder.write_all(head).unwrap();
    std::io::copy(&mut std::io::Read::take(std::io::repeat(0), count), &mut encoder).unwrap();
    encoder
}

#[cfg(target_os = "linux")]
#[test]
fn bombs() {
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    const BOMB: u64 = 128 << 20;
    let mat = Mat::LITTLE;
    let zlib = |head: &[u8]| {
        let encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        mat.element(15, &packed_zeros(encoder, head, BOMB).finish().unwrap())
    };
    let gzip = |head: &[u8]| {
        let encoder = GzEncoder::new(Vec::new(), Compression::best());
        packed_zeros(encoder, head, BOMB).finish().unwrap()
    };
    let samples = (BOMB / 3072) as u32;
    // The head of X as of an honest file, up to its values.
    let mut head = mat.matrix("X", 9, &[32, 32, 3, samples], 2, &[]);
    head = with_length(head, 56 + samples * 3072);
    let values = head.len() - 4;
    head[values..].copy_from_slice(&(samples * 3072).to_le_bytes());
    let honest = zlib(&head);
    assert!(BOMB > 1_000 * honest.len() as u64, "a bomb of less than 1000:1 shows nothing");
    let hidden = zlib(&mat.images(1));
    let labels = mat.labels(&[1]);
    let (honest, hidden) = (mat.file(&[honest, labels.clone()]), mat.file(&[hidden, labels]));
    let images = samples * 3072 / 784;
    let (honest_idx, hidden_idx) =
        (gzip(&dataset_files::idx(&[images, 28, 28], &[])), gzip(&dataset_files::idx(&[3, 4, 5], &[])));

    let (before, start) = (memory::peak().unwrap(), std::time::Instant::now());
    assert!(svhn_said(&honest).contains("bytes that claim to unpack to 134"));
    assert!(svhn_said(&hidden).contains("bytes after the matrix"));
    let folder = tempfile::tempdir().unwrap();
    dataset_files::mnist(folder.path(), true, 5, 4);
    let out = tempfile::tempdir().unwrap();
    let digits = |images: &[u8]| {
        fs::write(folder.path().join("train-images-idx3-ubyte.gz"), images).unwrap();
        let prepared = idx::prepare(folder.path(), &out.path().join("prepared"), Classes::Digits);
        assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
        prepared.unwrap_err().to_string()
    };
    assert!(digits(&honest_idx).contains("bytes that claim to unpack to 134"));
    assert!(digits(&hidden_idx).contains("more than the 60 values that its header declares"));
    // An image that would be held in memory; the file is a hole of a gigabyte.
    let wide = folder.path().join("train-images-idx3-ubyte");
    fs::write(&wide, dataset_files::idx(&[3, 1 << 15, 1 << 13], &[])).unwrap();
    fs::OpenOptions::new().write(true).open(&wide).unwrap().set_len(16 + (3 << 28)).unwrap();
    assert!(digits(&hidden_idx).contains("images of 8192×32768 pixels, expected 1 to 4096 per side"));
    // Five refusals of a tenth of a second each at most; other tests keep the machine busy meanwhile.
    assert!(start.elapsed() < std::time::Duration::from_secs(5), "{:?}", start.elapsed());
    let grown = memory::peak().unwrap() - before;
    // Other tests of this process run meanwhile, and hold little.
    assert!(grown < 64 << 20, "{grown} bytes more at the peak");
}
