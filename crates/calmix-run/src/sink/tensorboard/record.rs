//! The messages of an event file: protocol buffers in TFRecord frames. Those of the HPARAMS page are defined in
//! `tensorboard/plugins/hparams/plugin_data.proto`.
//!
//! The other fields are defined in `tensorboard/compat/proto/event.proto` and `summary.proto`. A frame consists of the
//! length of the message and two checksums.

use std::time::Duration;

use calmix_io::protobuf::Message;

/// The version that a file declares. From 2 on, the start of a session makes a reader drop later steps.
const VERSION: &str = "brain.Event:2";

/// A TensorBoard `Event` that is being written.
pub(super) struct EventRecord(Message);

impl EventRecord {
    pub(super) fn new(time: Duration, step: u64) -> Self {
        let mut event = Message::default();
        event.double(1, time.as_secs_f64());
        // An absent field means zero.
        if step > 0 {
            event.integer(2, step.cast_signed());
        }
        Self(event)
    }

    /// Writes `file_version`, the first message of a file.
    pub(super) fn version(&mut self) {
        self.0.text(3, VERSION);
    }

    /// Writes `session_log` with the status `START`: readers then drop this step and later ones from earlier files.
    pub(super) fn session_start(&mut self) {
        self.0.nested(7, |log| log.integer(1, 1));
    }

    /// Writes `summary` with a `value` per scalar: `tag` and `simple_value`.
    pub(super) fn scalars(&mut self, scalars: &[(String, f64)]) {
        self.0.nested(5, |summary| {
            for (tag, number) in scalars {
                summary.nested(1, |value| {
                    value.text(1, tag);
                    value.float(2, *number as f32);
                });
            }
        });
    }

    /// Writes `summary` with a `value` for a plugin: `tag`, an empty `tensor`, and `metadata` with its name and content.
    pub(super) fn plugin(&mut self, (plugin, tag): (&str, &str), content: &Message) {
        let mut value = Message::default();
        value.text(1, tag);
        // A single zero: readers drop a value without a tensor.
        value.nested(8, |tensor| {
            tensor.integer(1, 1);
            tensor.nested(2, |shape| shape.nested(2, |dimension| dimension.integer(1, 1)));
            tensor.bytes(5, &0_f32.to_le_bytes());
        });
        value.nested(9, |metadata| {
            metadata.nested(1, |data| {
                data.text(1, plugin);
                data.message(2, content);
            });
        });
        self.0.nested(5, |summary| summary.message(1, &value));
    }

    pub(super) fn framed(self) -> Vec<u8> {
        let message = self.0.into_bytes();
        let length = (message.len() as u64).to_le_bytes();
        [&length, &masked_crc(&length)[..], &message, &masked_crc(&message)].concat()
    }
}

/// Computes CRC-32C with a rotation and an offset, so that checksums of data with embedded checksums are not weak.
fn masked_crc(bytes: &[u8]) -> [u8; 4] {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

/// The name of the plugin, and the tags of its two messages.
pub(super) const HPARAMS_START: (&str, &str) = ("hparams", "_hparams_/session_start_info");
pub(super) const HPARAMS_END: (&str, &str) = ("hparams", "_hparams_/session_end_info");

/// The value of a hyperparameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Hyperparameter {
    /// A number.
    Number(f64),
    /// A word or a list.
    Text(String),
    /// A boolean.
    Flag(bool),
}

/// Builds `HParamsPluginData` with a `session_start_info`: the settings and the start time.
pub(super) fn hparams_start(settings: &[(String, Hyperparameter)], started: Duration) -> Message {
    let mut data = Message::default();
    data.nested(3, |info| {
        for (name, setting) in settings {
            // A map entry; its value is a `google.protobuf.Value`.
            info.nested(1, |entry| {
                entry.text(1, name);
                entry.nested(2, |value| match setting {
                    Hyperparameter::Number(number) => value.double(2, *number),
                    Hyperparameter::Text(text) => value.text(3, text),
                    Hyperparameter::Flag(flag) => value.integer(4, i64::from(*flag)),
                });
            });
        }
        info.double(5, started.as_secs_f64());
    });
    data
}

/// Builds `HParamsPluginData` with a `session_end_info`: success and the end time.
pub(super) fn hparams_end(ended: Duration) -> Message {
    let mut data = Message::default();
    data.nested(4, |info| {
        info.integer(1, 1);
        info.double(2, ended.as_secs_f64());
    });
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits = hex.as_bytes().chunks(2).map(|two| std::str::from_utf8(two).unwrap());
        digits.map(|two| u8::from_str_radix(two, 16).unwrap()).collect()
    }

    // Compares with the bytes that tensorboard 2.21.0 writes (`RecordWriter` on `SerializeToString`).
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
