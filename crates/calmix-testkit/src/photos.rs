//! Reads the golden files that `photos.py` writes.

use std::io::Read;

use serde::Deserialize;

#[derive(Deserialize)]
pub struct Golden {
    #[serde(skip)]
    bytes: Vec<u8>,
    pub images: Vec<Image>,
    pub archives: Vec<Archive>,
    pub crafted: Vec<Archive>,
    pub mutants: Vec<Mutant>,
    pub shard: Shard,
}

#[derive(Deserialize)]
pub struct Image {
    pub name: String,
    pub kind: String,
    pub file: Span,
    pub width: u32,
    pub height: u32,
    pub pixels: Span,
}

#[derive(Deserialize)]
pub struct Archive {
    pub name: String,
    pub file: Span,
    pub listing: Option<Listing>,
}

/// Number and CRC-32 of the members that `tarfile` lists.
pub type Listing = (usize, u32);

/// Base, block whose checksum is made right (or −1), length, edits, what `tarfile` lists.
#[derive(Deserialize)]
pub struct Mutant(pub usize, pub i64, pub usize, pub Vec<(usize, u8)>, pub Option<Listing>);

#[derive(Deserialize)]
pub struct Shard {
    pub file: Span,
    pub samples: Vec<Sample>,
}

#[derive(Deserialize)]
pub struct Sample {
    pub key: String,
    pub label: u32,
    pub crc: u32,
}

#[derive(Deserialize, Clone, Copy)]
pub struct Span(usize, usize);

impl Golden {
    pub fn load() -> Self {
        let mut golden: Self =
            serde_json::from_str(include_str!("../../calmix-formats/tests/golden/photos.json")).unwrap();
        let packed: &[u8] = include_bytes!("../../calmix-formats/tests/golden/photos.zlib");
        flate2::read::ZlibDecoder::new(packed).read_to_end(&mut golden.bytes).unwrap();
        golden
    }

    pub fn bytes(&self, Span(at, length): Span) -> &[u8] {
        &self.bytes[at..at + length]
    }

    pub fn image(&self, name: &str) -> &[u8] {
        self.bytes(self.images.iter().find(|image| image.name == name).unwrap().file)
    }
}

pub fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}
