//! Writes a message field by field.

use super::{BYTES, FIXED_32, FIXED_64, VARINT};

/// A message that is being written.
///
/// ```
/// use calmix_io::protobuf::Message;
///
/// let mut entry = Message::default();
/// entry.text(1, "key");
/// entry.integer(2, 300);
/// assert_eq!(entry.into_bytes(), [0x0a, 3, b'k', b'e', b'y', 0x10, 0xac, 0x02]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message(Vec<u8>);

impl Message {
    /// Adds a field of type int64, uint64, bool or enum.
    pub fn integer(&mut self, field: u32, value: i64) {
        self.key(field, VARINT);
        // A negative number takes ten bytes, as its two's complement.
        self.varint(value.cast_unsigned());
    }

    /// Adds a field of type float.
    pub fn float(&mut self, field: u32, value: f32) {
        self.key(field, FIXED_32);
        self.0.extend(value.to_le_bytes());
    }

    /// Adds a field of type double.
    pub fn double(&mut self, field: u32, value: f64) {
        self.key(field, FIXED_64);
        self.0.extend(value.to_le_bytes());
    }

    /// Adds a field of type bytes.
    pub fn bytes(&mut self, field: u32, value: &[u8]) {
        self.key(field, BYTES);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    /// Adds a field of type string.
    pub fn text(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// Adds a field that is itself a message.
    pub fn message(&mut self, field: u32, value: &Self) {
        self.bytes(field, &value.0);
    }

    /// Adds a message field that `write` fills in place, so that a large message is not copied first field by field and then
    /// as a whole.
    pub fn nested(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        self.key(field, BYTES);
        let start = self.0.len();
        write(self);
        let mut length = Self::default();
        length.varint((self.0.len() - start) as u64);
        // The length precedes the content, and its own size depends on the content.
        self.0.splice(start..start, length.0);
    }

    /// Reserves memory for additional bytes.
    pub fn reserve(&mut self, bytes: usize) {
        self.0.reserve(bytes);
    }

    /// Returns the number of bytes written so far.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether no field has been written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes of the message.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn key(&mut self, field: u32, kind: u64) {
        self.varint(u64::from(field) << 3 | kind);
    }

    /// Appends a varint: seven bits per byte, the lowest first, with the top bit set on all but the last.
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples in the specification of the encoding: 150, and −2 in ten bytes.
    #[test]
    fn integers_are_those_of_the_specification() {
        let mut message = Message::default();
        message.integer(1, 150);
        assert_eq!(message.into_bytes(), [0x08, 0x96, 0x01]);
        let mut message = Message::default();
        message.integer(1, -2);
        assert_eq!(message.into_bytes(), [0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
        let mut message = Message::default();
        message.integer(20, 7);
        assert_eq!(message.into_bytes(), [0xa0, 0x01, 7]);
    }

    #[test]
    fn nested_messages_equal_copied_ones() {
        for length in [0, 1, 127, 128, 20_000] {
            let mut inner = Message::default();
            inner.bytes(9, &vec![7; length]);
            let mut copied = Message::default();
            copied.text(1, "before");
            copied.message(5, &inner);
            let mut nested = Message::default();
            nested.text(1, "before");
            nested.nested(5, |inner| inner.bytes(9, &vec![7; length]));
            assert_eq!(nested, copied);
        }
    }
}
