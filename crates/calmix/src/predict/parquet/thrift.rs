//! Thrift's compact protocol, as much of it as a Parquet footer needs: no number is negative, and nothing is read.

/// Kinds of fields, by their numbers in the protocol.
#[derive(Debug, Clone, Copy)]
pub(super) enum FieldKind {
    I32 = 5,
    I64 = 6,
    Binary = 8,
    List = 9,
    Struct = 12,
}

/// A struct that grows field by field. Fields come in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct ThriftStruct {
    bytes: Vec<u8>,
    last: u8,
}

impl ThriftStruct {
    /// The field `id` is at most 15 above the one before, as in all structs of Parquet.
    fn field(&mut self, id: u8, kind: FieldKind) {
        self.bytes.push(((id - self.last) << 4) | kind as u8);
        self.last = id;
    }

    pub(super) fn i32(mut self, id: u8, value: usize) -> Self {
        self.field(id, FieldKind::I32);
        zigzag(&mut self.bytes, value);
        self
    }

    pub(super) fn i64(mut self, id: u8, value: usize) -> Self {
        self.field(id, FieldKind::I64);
        zigzag(&mut self.bytes, value);
        self
    }

    pub(super) fn text(mut self, id: u8, value: &str) -> Self {
        self.field(id, FieldKind::Binary);
        binary(&mut self.bytes, value.as_bytes());
        self
    }

    pub(super) fn structure(mut self, id: u8, value: Self) -> Self {
        self.field(id, FieldKind::Struct);
        self.bytes.extend(value.end());
        self
    }

    pub(super) fn structures(mut self, id: u8, values: Vec<Self>) -> Self {
        self.list(id, FieldKind::Struct, values.len());
        for value in values {
            self.bytes.extend(value.end());
        }
        self
    }

    pub(super) fn texts(mut self, id: u8, values: &[&str]) -> Self {
        self.list(id, FieldKind::Binary, values.len());
        for value in values {
            binary(&mut self.bytes, value.as_bytes());
        }
        self
    }

    pub(super) fn i32s(mut self, id: u8, values: &[usize]) -> Self {
        self.list(id, FieldKind::I32, values.len());
        for &value in values {
            zigzag(&mut self.bytes, value);
        }
        self
    }

    fn list(&mut self, id: u8, kind: FieldKind, length: usize) {
        self.field(id, FieldKind::List);
        if length < 15 {
            self.bytes.push(((length as u8) << 4) | kind as u8);
        } else {
            self.bytes.push(0xf0 | kind as u8);
            varint(&mut self.bytes, length as u64);
        }
    }

    /// The bytes, with the mark that ends a struct.
    pub(super) fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

/// Seven bits a byte, the lowest first.
pub(super) fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// A signed number. The lowest bit is the sign.
fn zigzag(bytes: &mut Vec<u8>, value: usize) {
    varint(bytes, (value as u64) << 1);
}

fn binary(bytes: &mut Vec<u8>, value: &[u8]) {
    varint(bytes, value.len() as u64);
    bytes.extend(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that Apache Thrift 0.25 writes for the same struct.
    #[test]
    fn bytes_are_those_of_the_compact_protocol() {
        let inner = ThriftStruct::default().i32(1, 1).i64(4, 300);
        let bytes = ThriftStruct::default()
            .text(4, "ab")
            .structure(5, inner)
            .i32s(6, &[0; 16])
            .texts(9, &["c"])
            .structures(10, vec![ThriftStruct::default()]);
        let expected = [
            &[0x48, 2, b'a', b'b', 0x1c, 0x15, 2, 0x36, 0xd8, 4, 0, 0x19, 0xf5, 16][..],
            &[0; 16],
            &[0x39, 0x18, 1, b'c', 0x19, 0x1c, 0, 0],
        ];
        assert_eq!(bytes.end(), expected.concat());
    }
}
