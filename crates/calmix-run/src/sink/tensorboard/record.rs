//! One message of an event file: protocol buffers inside a TFRecord.
//!
//! The fields are those of `tensorboard/compat/proto/event.proto` and `summary.proto`. A field is a key (its
//! number times eight plus the kind of its value) and the value; the frame around a message is its length, and
//! two checksums.

use std::time::Duration;

/// Kinds of values.
pub(super) const VARINT: u8 = 0;
pub(super) const FIXED_64: u8 = 1;
const BYTES: u8 = 2;
const FIXED_32: u8 = 5;

/// The version that a file announces. From 2 on, the start of a session makes a reader drop later steps.
const VERSION: &[u8] = b"brain.Event:2";

/// An `Event` of TensorBoard being written.
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn new(time: Duration, step: u64) -> Self {
        let mut bytes = vec![key(1, FIXED_64)];
        bytes.extend(time.as_secs_f64().to_le_bytes());
        // Zero is what an absent field means.
        if step > 0 {
            bytes.push(key(2, VARINT));
            varint(&mut bytes, step);
        }
        Self(bytes)
    }

    /// `file_version`, the first message of a file.
    pub(super) fn version(&mut self) {
        field(&mut self.0, 3, VERSION);
    }

    /// `session_log` with status `START`: readers drop this step and later ones of earlier files.
    pub(super) fn session_start(&mut self) {
        field(&mut self.0, 7, &[key(1, VARINT), 1]);
    }

    /// `summary` with a `value` for each scalar: `tag` and `simple_value`.
    pub(super) fn scalars(&mut self, scalars: &[(String, f32)]) {
        let mut summary = Vec::new();
        for (tag, number) in scalars {
            let mut value = Vec::new();
            field(&mut value, 1, tag.as_bytes());
            value.push(key(2, FIXED_32));
            value.extend(number.to_le_bytes());
            field(&mut summary, 1, &value);
        }
        field(&mut self.0, 5, &summary);
    }

    /// `summary` with a `value` for a plugin: `tag`, an empty `tensor`, and `metadata` that names it and has its content.
    pub(super) fn plugin(&mut self, (plugin, tag): (&str, &str), content: &[u8]) {
        let mut data = Vec::new();
        let mut metadata = Vec::new();
        let mut shape = Vec::new();
        field(&mut data, 1, plugin.as_bytes());
        field(&mut data, 2, content);
        field(&mut metadata, 1, &data);
        // One float, zero: readers drop a value that has no tensor.
        field(&mut shape, 2, &[key(1, VARINT), 1]);
        let mut tensor = vec![key(1, VARINT), 1];
        field(&mut tensor, 2, &shape);
        field(&mut tensor, 5, &0_f32.to_le_bytes());
        let mut value = Vec::new();
        let mut summary = Vec::new();
        field(&mut value, 1, tag.as_bytes());
        field(&mut value, 8, &tensor);
        field(&mut value, 9, &metadata);
        field(&mut summary, 1, &value);
        field(&mut self.0, 5, &summary);
    }

    /// The message in its frame.
    pub(super) fn framed(&self) -> Vec<u8> {
        let length = (self.0.len() as u64).to_le_bytes();
        [&length, &masked_crc(&length)[..], &self.0, &masked_crc(&self.0)].concat()
    }
}

pub(super) fn key(number: u8, kind: u8) -> u8 {
    number << 3 | kind
}

pub(super) fn field(to: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    to.push(key(number, BYTES));
    varint(to, bytes.len() as u64);
    to.extend(bytes);
}

/// Seven bits a byte, the lowest first, the top bit set on all but the last.
fn varint(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// CRC-32C, turned and shifted, so that the checksum of data that holds checksums is not weak.
fn masked_crc(bytes: &[u8]) -> [u8; 4] {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits = hex.as_bytes().chunks(2).map(|two| std::str::from_utf8(two).unwrap());
        digits.map(|two| u8::from_str_radix(two, 16).unwrap()).collect()
    }

    // The bytes that tensorboard 2.21.0 writes for the same messages (`RecordWriter` on `SerializeToString`).
    #[test]
    fn the_bytes_are_tensorboards() {
        let mut version = Message::new(Duration::from_millis(1500), 0);
        version.version();
        let mut start = Message::new(Duration::from_millis(1500), 300);
        start.session_start();
        let mut scalars = Message::new(Duration::from_millis(1500), 300);
        scalars.scalars(&[("a/b".to_owned(), 0.5), ("c".to_owned(), -2.0)]);
        for (message, expected) in [(version, VERSION), (start, START), (scalars, SCALARS)] {
            assert_eq!(message.framed(), bytes(expected));
        }
    }

    const VERSION: &str = "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c";
    const START: &str = "100000000000000095fbfe1809000000000000f83f10ac023a020801713b788a";
    const SCALARS: &str = "2400000000000000422b804d09000000000000f83f10ac022a160a0a0a03612f62150000003f\
                           0a080a016315000000c0ac91a714";
}
