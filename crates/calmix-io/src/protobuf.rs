//! Messages of protocol buffers, written field by field. TensorBoard's and ONNX's use a dozen fields each, so that a compiler of
//! their schemas and its output would be longer than this file and the code that calls it.
//!
//! A field is a key (its number times eight plus the kind of its value) and the value. The order of fields does not matter, and
//! a field that is absent has its default, which is zero or empty.

const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const BYTES: u64 = 2;
const FIXED_32: u64 = 5;

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
    /// A field of type int64, uint64, bool or an enumeration.
    pub fn integer(&mut self, field: u32, value: i64) {
        self.key(field, VARINT);
        // A negative number is written in ten bytes, as its two's complement.
        self.varint(value.cast_unsigned());
    }

    /// A field of type float.
    pub fn float(&mut self, field: u32, value: f32) {
        self.key(field, FIXED_32);
        self.0.extend(value.to_le_bytes());
    }

    /// A field of type double.
    pub fn double(&mut self, field: u32, value: f64) {
        self.key(field, FIXED_64);
        self.0.extend(value.to_le_bytes());
    }

    /// A field of type bytes.
    pub fn bytes(&mut self, field: u32, value: &[u8]) {
        self.key(field, BYTES);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    /// A field of type string.
    pub fn text(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// A field whose value is a message.
    pub fn message(&mut self, field: u32, value: &Self) {
        self.bytes(field, &value.0);
    }

    /// The bytes of the message.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn key(&mut self, field: u32, kind: u64) {
        self.varint(u64::from(field) << 3 | kind);
    }

    /// Seven bits a byte, the lowest first, the top bit set on all but the last.
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

    /// The examples of the description of the encoding: 150, and −2 in ten bytes.
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
}
