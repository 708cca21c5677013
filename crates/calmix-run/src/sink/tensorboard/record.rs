//! One message of an event file: protocol buffers inside a TFRecord.
//!
//! The fields are those of `tensorboard/compat/proto/event.proto` and `summary.proto`. The frame around a message is its
//! length, and two checksums.

use std::time::Duration;

use calmix_io::protobuf::Message;

/// The version that a file announces. From 2 on, the start of a session makes a reader drop later steps.
const VERSION: &str = "brain.Event:2";

/// An `Event` of TensorBoard being written.
pub(super) struct EventRecord(Message);

impl EventRecord {
    pub(super) fn new(time: Duration, step: u64) -> Self {
        let mut event = Message::default();
        event.double(1, time.as_secs_f64());
        // Zero is what an absent field means.
        if step > 0 {
            event.integer(2, step.cast_signed());
        }
        Self(event)
    }

    /// `file_version`, the first message of a file.
    pub(super) fn version(&mut self) {
        self.0.text(3, VERSION);
    }

    /// `session_log` with status `START`: readers drop this step and later ones of earlier files.
    pub(super) fn session_start(&mut self) {
        let mut log = Message::default();
        log.integer(1, 1);
        self.0.message(7, &log);
    }

    /// `summary` with a `value` for each scalar: `tag` and `simple_value`.
    pub(super) fn scalars(&mut self, scalars: &[(String, f32)]) {
        let mut summary = Message::default();
        for (tag, number) in scalars {
            let mut value = Message::default();
            value.text(1, tag);
            value.float(2, *number);
            summary.message(1, &value);
        }
        self.0.message(5, &summary);
    }

    /// `summary` with a `value` for a plugin: `tag`, an empty `tensor`, and `metadata` that names it and has its content.
    pub(super) fn plugin(&mut self, (plugin, tag): (&str, &str), content: &Message) {
        let mut data = Message::default();
        data.text(1, plugin);
        data.message(2, content);
        let mut metadata = Message::default();
        metadata.message(1, &data);
        // One float, zero: readers drop a value that has no tensor.
        let mut dimension = Message::default();
        dimension.integer(1, 1);
        let mut shape = Message::default();
        shape.message(2, &dimension);
        let mut tensor = Message::default();
        tensor.integer(1, 1);
        tensor.message(2, &shape);
        tensor.bytes(5, &0_f32.to_le_bytes());
        let mut value = Message::default();
        value.text(1, tag);
        value.message(8, &tensor);
        value.message(9, &metadata);
        let mut summary = Message::default();
        summary.message(1, &value);
        self.0.message(5, &summary);
    }

    /// The message in its frame.
    pub(super) fn framed(self) -> Vec<u8> {
        let message = self.0.into_bytes();
        let length = (message.len() as u64).to_le_bytes();
        [&length, &masked_crc(&length)[..], &message, &masked_crc(&message)].concat()
    }
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
        let mut version = EventRecord::new(Duration::from_millis(1500), 0);
        version.version();
        let mut start = EventRecord::new(Duration::from_millis(1500), 300);
        start.session_start();
        let mut scalars = EventRecord::new(Duration::from_millis(1500), 300);
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
