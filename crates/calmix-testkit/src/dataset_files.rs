//! Tiny files of every format whose every pixel is known.

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

/// Channel `c` of the pixel in column `x` and row `y` of image `n`: no two directions have the same slope, so an
/// image that is turned, mirrored or has its channels exchanged differs.
pub fn pixel(n: usize, c: usize, y: usize, x: usize) -> u8 {
    ((3 * x + 11 * y + 67 * c + 29 * n) % 256) as u8
}

/// Three planes, row by row.
pub fn planes(n: usize, side: usize) -> Vec<u8> {
    (0..3).flat_map(|c| (0..side).flat_map(move |y| (0..side).map(move |x| pixel(n, c, y, x)))).collect()
}

/// Three planes, column by column.
pub fn planes_by_column(n: usize, side: usize) -> Vec<u8> {
    (0..3).flat_map(|c| (0..side).flat_map(move |x| (0..side).map(move |y| pixel(n, c, y, x)))).collect()
}

/// CIFAR-10: two images in each of six files; image n has label n mod 10.
pub fn cifar10(folder: &Path) {
    let names = (1..=5).map(|n| format!("data_batch_{n}.bin")).chain(["test_batch.bin".to_owned()]);
    for (file, name) in names.enumerate() {
        let record = |n: usize| [vec![(n % 10) as u8], planes(n, 32)].concat();
        fs::write(folder.join(name), [record(2 * file), record(2 * file + 1)].concat()).unwrap();
    }
}

/// CIFAR-100: three training images and two to test; image n has coarse label n + 3 and fine label 99 − n.
pub fn cifar100(folder: &Path) {
    let record = |n: usize| [vec![n as u8 + 3, 99 - n as u8], planes(n, 32)].concat();
    fs::write(folder.join("train.bin"), (0..3).flat_map(record).collect::<Vec<u8>>()).unwrap();
    fs::write(folder.join("test.bin"), (3..5).flat_map(record).collect::<Vec<u8>>()).unwrap();
}

/// STL-10: two images to train on, one to test, one without a label; image n has class n.
pub fn stl10(folder: &Path) {
    let images = |ids: &[usize]| ids.iter().flat_map(|&n| planes_by_column(n, 96)).collect::<Vec<u8>>();
    fs::write(folder.join("train_X.bin"), images(&[0, 1])).unwrap();
    fs::write(folder.join("train_y.bin"), [1, 2]).unwrap();
    fs::write(folder.join("test_X.bin"), images(&[2])).unwrap();
    fs::write(folder.join("test_y.bin"), [3]).unwrap();
    fs::write(folder.join("unlabeled_X.bin"), images(&[3])).unwrap();
}

/// An idx file.
pub fn idx(dims: &[u32], values: &[u8]) -> Vec<u8> {
    let dims_bytes = dims.iter().flat_map(|dim| dim.to_be_bytes());
    [0, 0, 8, dims.len() as u8].into_iter().chain(dims_bytes).chain(values.iter().copied()).collect()
}

/// MNIST-like: the red channels of images of `width`×`height`; image n has label n.
pub fn mnist(folder: &Path, packed: bool, width: usize, height: usize) {
    let put = |name: &str, bytes: Vec<u8>| {
        let (name, bytes) =
            if packed { (format!("{name}.gz"), gzip(&bytes)) } else { (name.to_owned(), bytes) };
        fs::write(folder.join(name), bytes).unwrap();
    };
    for (stem, ids) in [("train", 0..3), ("t10k", 3..5)] {
        let red = |n| (0..height).flat_map(move |y| (0..width).map(move |x| pixel(n, 0, y, x)));
        let values: Vec<u8> = ids.clone().flat_map(red).collect();
        let labels: Vec<u8> = ids.clone().map(|n| n as u8).collect();
        let count = ids.len() as u32;
        put(&format!("{stem}-images-idx3-ubyte"), idx(&[count, height as u32, width as u32], &values));
        put(&format!("{stem}-labels-idx1-ubyte"), idx(&[count], &labels));
    }
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Writes MATLAB files in either order of bytes.
#[derive(Clone, Copy)]
pub struct Mat {
    pub big: bool,
}

impl Mat {
    pub const LITTLE: Self = Self { big: false };

    fn u32(self, number: u32) -> [u8; 4] {
        if self.big { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    pub fn file(self, elements: &[Vec<u8>]) -> Vec<u8> {
        let mut header = b"MATLAB 5.0 MAT-file, made by hand".to_vec();
        header.resize(124, b' ');
        header.extend(if self.big { *b"\x01\x00MI" } else { *b"\x00\x01IM" });
        header.into_iter().chain(elements.iter().flatten().copied()).collect()
    }

    /// An element without padding.
    pub fn element(self, kind: u32, bytes: &[u8]) -> Vec<u8> {
        [&self.u32(kind), &self.u32(bytes.len() as u32), bytes].concat()
    }

    fn padded(self, kind: u32, bytes: &[u8]) -> Vec<u8> {
        let mut element = self.element(kind, bytes);
        element.resize(element.len().next_multiple_of(8), 0);
        element
    }

    /// An array of `class` whose values are stored as `kind`.
    pub fn matrix(self, name: &str, class: u32, dims: &[u32], kind: u32, data: &[u8]) -> Vec<u8> {
        let flags = [self.u32(class), [0; 4]].concat();
        let dims: Vec<u8> = dims.iter().flat_map(|&dim| self.u32(dim)).collect();
        let parts = [self.padded(6, &flags), self.padded(5, &dims), self.padded(1, name.as_bytes())];
        self.element(14, &[parts.concat(), self.padded(kind, data)].concat())
    }

    pub fn compressed(self, element: &[u8]) -> Vec<u8> {
        self.element(15, &zlib(element))
    }

    /// SVHN's X of images 0 to `n` − 1.
    pub fn images(self, n: usize) -> Vec<u8> {
        let data: Vec<u8> = (0..n).flat_map(|n| planes_by_column(n, 32)).collect();
        self.matrix("X", 9, &[32, 32, 3, n as u32], 2, &data)
    }

    /// SVHN's y, stored as bytes.
    pub fn labels(self, labels: &[u8]) -> Vec<u8> {
        self.matrix("y", 9, &[labels.len() as u32, 1], 2, labels)
    }
}

/// A tar archive of files.
pub fn shard(path: &Path, members: &[(&str, &[u8])]) {
    let mut archive = Vec::new();
    for (name, bytes) in members {
        let mut header = [0_u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        let fields = [(100, "0000644\0"), (108, "0000000\0"), (116, "0000000\0"), (136, "00000000000\0")];
        for (at, text) in fields {
            header[at..at + text.len()].copy_from_slice(text.as_bytes());
        }
        header[124..136].copy_from_slice(format!("{:011o}\0", bytes.len()).as_bytes());
        header[148..156].fill(b' ');
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        archive.extend_from_slice(&header);
        archive.extend_from_slice(bytes);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    fs::write(path, archive).unwrap();
}
