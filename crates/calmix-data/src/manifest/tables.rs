//! The records of a prepared dataset: samples, and the files that hold them.

/// Marks a sample without a label in [`SampleRecord::label`].
pub const NO_LABEL: u32 = u32::MAX;

/// The maximum size of a sample, in bytes: enough for any photo, too small to exhaust memory.
pub const MAX_SAMPLE_BYTES: u32 = 256 << 20;

/// The file in the prepared folder that holds the shrunk images, one after the other.
pub const SHRUNK_FILE: &str = "shrunk.bin";

/// The suffix of an unpacked part of vectors, appended to the name of the original file.
pub(crate) const UNPACKED_VECTORS: &str = ".f32";

/// The file in the prepared folder that holds the groups.
pub(crate) const GROUPS_FILE: &str = "groups.bin";

/// The file in the prepared folder that says how labels were drawn, a byte per sample.
pub(crate) const DRAWN_FILE: &str = "drawn.bin";

/// The file in the prepared folder with the weights of labels, 8 bytes per sample.
pub(crate) const WEIGHTS_FILE: &str = "weights.bin";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleRecord {
    /// The part that holds its bytes.
    pub part: u32,
    /// The offset of its bytes.
    pub offset: u64,
    pub length: u32,
    /// The CRC-32C of its bytes.
    pub checksum: u32,
    /// Its class, an index into [`Header::classes`](super::Header::classes), or [`NO_LABEL`].
    pub label: u32,
}

impl SampleRecord {
    /// Bytes of a record in the table.
    pub const BYTES: usize = 24;

    /// Returns the class; `None` for an unlabelled sample.
    pub fn class(self) -> Option<u32> {
        (self.label != NO_LABEL).then_some(self.label)
    }

    /// Encodes the record for the table.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.part.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.length.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.checksum.to_le_bytes());
        bytes[20..].copy_from_slice(&self.label.to_le_bytes());
        bytes
    }

    /// Decodes a record of the table.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let [o0, o1, o2, o3, o4, o5, o6, o7, rest @ ..] = bytes;
        let [p0, p1, p2, p3, n0, n1, n2, n3, c0, c1, c2, c3, l0, l1, l2, l3] = rest;
        Self {
            offset: u64::from_le_bytes([o0, o1, o2, o3, o4, o5, o6, o7]),
            part: u32::from_le_bytes([p0, p1, p2, p3]),
            length: u32::from_le_bytes([n0, n1, n2, n3]),
            checksum: u32::from_le_bytes([c0, c1, c2, c3]),
            label: u32::from_le_bytes([l0, l1, l2, l3]),
        }
    }
}

/// The location of a part, as its number in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartKind {
    Source = 0,
    /// In the prepared folder.
    Unpacked = 1,
    /// In [`SHRUNK_FILE`] in the prepared folder.
    Shrunk = 2,
}

/// A file that holds samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetPart {
    /// Its path, with `/`, relative to the root of the source or, if unpacked, to the prepared folder.
    pub path: String,
    /// Whether it lies in the prepared folder.
    pub unpacked: bool,
    /// Whether its image was shrunk: its sample is then in [`SHRUNK_FILE`] in the prepared folder.
    pub shrunk: bool,
    /// Its length in bytes at preparation.
    pub length: u64,
}
