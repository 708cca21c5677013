//! Reads the fields of a message from an untrusted file, without copying, allocation or recursion.

use std::error::Error;
use std::fmt;
use std::iter::FusedIterator;

use super::{BYTES, FIXED_32, FIXED_64, VARINT};

/// The fields of a message, in the order of the file. The first error ends them.
///
/// ```
/// use calmix_io::protobuf::{Fields, Message, ProtobufError};
///
/// let mut entry = Message::default();
/// entry.text(1, "key");
/// entry.integer(2, 300);
/// let bytes = entry.into_bytes();
/// let mut key = "";
/// let mut value = 0;
/// for field in Fields::new(&bytes) {
///     let field = field?;
///     match field.number {
///         1 => key = field.text()?,
///         2 => value = field.integer()?,
///         // A later version of the format has more fields.
///         _ => {}
///     }
/// }
/// assert_eq!((key, value), ("key", 300));
/// # Ok::<(), ProtobufError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    rest: Cursor<'a>,
}

/// A field of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its number in the schema, at least one.
    pub number: u32,
    pub value: Value<'a>,
    /// The end of its value, as an offset in the file.
    end: usize,
}

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// An integer, a bool or an enum; a negative number as its two's complement.
    Varint(u64),
    /// Four bytes, such as a float.
    Fixed32(u32),
    /// Eight bytes, such as a double.
    Fixed64(u64),
    /// Bytes, a string, a message or packed numbers.
    Bytes(&'a [u8]),
}

/// The offset and reason of a malformed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtobufError {
    /// The offset from the start of the file.
    pub offset: usize,
    /// The problem at that offset.
    pub problem: ProtobufProblem,
}

/// Why bytes are not a valid message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtobufProblem {
    /// A field extends beyond the end.
    Truncated,
    /// A variable-length integer does not fit 64 bits.
    LongInteger,
    /// A field has the number zero, or one with more than 29 bits.
    FieldNumber,
    /// A group, or a nonexistent wire type.
    WireType,
    /// The schema demands another type.
    UnexpectedType(u32),
    /// A text is not UTF-8.
    Text(u32),
}

impl fmt::Display for ProtobufError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problem {
            ProtobufProblem::Truncated => write!(f, "a field ends after the end of the data")?,
            ProtobufProblem::LongInteger => write!(f, "an integer has more than 64 bits")?,
            ProtobufProblem::FieldNumber => write!(f, "a field has an invalid number")?,
            ProtobufProblem::WireType => write!(f, "a field has an unsupported wire type")?,
            ProtobufProblem::UnexpectedType(field) => write!(f, "field {field} has an unexpected type")?,
            ProtobufProblem::Text(field) => write!(f, "the text of field {field} is not UTF-8")?,
        }
        write!(f, " at byte {}", self.offset)
    }
}

impl Error for ProtobufError {}

/// The remaining bytes, and their offset in the file.
#[derive(Debug, Clone, Copy)]
struct Cursor<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Cursor<'a> {
    fn error(self, problem: ProtobufProblem) -> ProtobufError {
        ProtobufError { offset: self.offset, problem }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let split = self.bytes.split_at_checked(length);
        let (taken, rest) = split.ok_or_else(|| self.error(ProtobufProblem::Truncated))?;
        self.bytes = rest;
        self.offset += length;
        Ok(taken)
    }

    fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], ProtobufError> {
        let start = *self;
        self.take(LENGTH)?.try_into().map_err(|_| start.error(ProtobufProblem::Truncated))
    }

    fn varint(&mut self) -> Result<u64, ProtobufError> {
        let start = *self;
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit.
            if bits << shift >> shift != bits {
                return Err(start.error(ProtobufProblem::LongInteger));
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(start.error(ProtobufProblem::LongInteger))
    }

    fn field(&mut self) -> Result<Field<'a>, ProtobufError> {
        /// Field numbers have 29 bits.
        const MAX_NUMBER: u64 = (1 << 29) - 1;
        let start = *self;
        let key = self.varint()?;
        let number = key >> 3;
        if number == 0 || number > MAX_NUMBER {
            return Err(start.error(ProtobufProblem::FieldNumber));
        }
        let value = match key & 7 {
            VARINT => Value::Varint(self.varint()?),
            FIXED_64 => Value::Fixed64(u64::from_le_bytes(self.array()?)),
            FIXED_32 => Value::Fixed32(u32::from_le_bytes(self.array()?)),
            BYTES => {
                let length = self.varint()?;
                // Larger than memory on a 32-bit machine; the data are shorter in any case.
                Value::Bytes(self.take(usize::try_from(length).unwrap_or(usize::MAX))?)
            }
            _ => return Err(start.error(ProtobufProblem::WireType)),
        };
        Ok(Field { number: number as u32, value, end: self.offset })
    }

    /// Reads the next item with `read`, if any data are left. An error discards the rest.
    fn next<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ProtobufError>,
    ) -> Option<Result<T, ProtobufError>> {
        if self.bytes.is_empty() {
            return None;
        }
        let found = read(self);
        if found.is_err() {
            self.bytes = &[];
        }
        Some(found)
    }
}

impl<'a> Fields<'a> {
    /// Returns the fields of a message that fills a whole file.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: Cursor { bytes, offset: 0 } }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, ProtobufError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.rest.next(Cursor::field)
    }
}

impl FusedIterator for Fields<'_> {}

impl<'a> Field<'a> {
    /// Returns the error that the field does not have the type in the schema.
    pub fn unexpected(&self) -> ProtobufError {
        self.error(ProtobufProblem::UnexpectedType(self.number))
    }

    fn error(&self, problem: ProtobufProblem) -> ProtobufError {
        ProtobufError { offset: self.start(), problem }
    }

    /// Returns the offset of its value in the file; for a varint, the offset of its end.
    fn start(&self) -> usize {
        let length = match self.value {
            Value::Varint(_) => 0,
            Value::Fixed32(_) => 4,
            Value::Fixed64(_) => 8,
            Value::Bytes(bytes) => bytes.len(),
        };
        self.end.saturating_sub(length)
    }

    fn cursor(&self, bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, offset: self.start() }
    }

    /// Returns its value as an integer: int64, int32, bool or enum.
    ///
    /// # Errors
    /// If it has another type, like the methods below.
    pub fn integer(&self) -> Result<i64, ProtobufError> {
        match self.value {
            Value::Varint(number) => Ok(number.cast_signed()),
            _ => Err(self.unexpected()),
        }
    }

    /// Returns its value of type float.
    pub fn float(&self) -> Result<f32, ProtobufError> {
        match self.value {
            Value::Fixed32(bits) => Ok(f32::from_bits(bits)),
            _ => Err(self.unexpected()),
        }
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> Result<&'a [u8], ProtobufError> {
        match self.value {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(self.unexpected()),
        }
    }

    /// Returns its text.
    ///
    /// # Errors
    /// If it has another type, or is not UTF-8.
    pub fn text(&self) -> Result<&'a str, ProtobufError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| self.error(ProtobufProblem::Text(self.number)))
    }

    /// Returns the fields of its message.
    pub fn message(&self) -> Result<Fields<'a>, ProtobufError> {
        Ok(Fields { rest: self.cursor(self.bytes()?) })
    }

    /// Returns its integers, packed or a single one.
    pub fn varints(&self) -> Result<Packed<'a, u64>, ProtobufError> {
        let single = if let Value::Varint(number) = self.value { Some(number) } else { None };
        self.packed(single, Cursor::varint)
    }

    /// Returns the bits of its floats, packed or a single one.
    pub fn fixed32s(&self) -> Result<Packed<'a, u32>, ProtobufError> {
        let single = if let Value::Fixed32(bits) = self.value { Some(bits) } else { None };
        self.packed(single, |rest| Ok(u32::from_le_bytes(rest.array()?)))
    }

    /// Returns the bits of its doubles, packed or a single one.
    pub fn fixed64s(&self) -> Result<Packed<'a, u64>, ProtobufError> {
        let single = if let Value::Fixed64(bits) = self.value { Some(bits) } else { None };
        self.packed(single, |rest| Ok(u64::from_le_bytes(rest.array()?)))
    }

    fn packed<T>(&self, single: Option<T>, read: ReadNumber<'a, T>) -> Result<Packed<'a, T>, ProtobufError> {
        let bytes = match self.value {
            Value::Bytes(bytes) => bytes,
            _ if single.is_some() => &[],
            _ => return Err(self.unexpected()),
        };
        Ok(Packed { single, rest: self.cursor(bytes), read })
    }
}

type ReadNumber<'a, T> = fn(&mut Cursor<'a>) -> Result<T, ProtobufError>;

/// The numbers of one field.
#[derive(Debug, Clone)]
pub struct Packed<'a, T> {
    single: Option<T>,
    rest: Cursor<'a>,
    read: ReadNumber<'a, T>,
}

impl<T> Iterator for Packed<'_, T> {
    type Item = Result<T, ProtobufError>;

    fn next(&mut self) -> Option<Self::Item> {
        let single = self.single.take().map(Ok);
        single.or_else(|| self.rest.next(self.read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protobuf::Message;

    fn collect(bytes: &[u8]) -> Result<Vec<(u32, Value<'_>)>, ProtobufError> {
        Fields::new(bytes).map(|field| field.map(|field| (field.number, field.value))).collect()
    }

    fn problem(bytes: &[u8]) -> (usize, ProtobufProblem) {
        let error = collect(bytes).unwrap_err();
        (error.offset, error.problem)
    }

    fn sample() -> Vec<u8> {
        let mut inner = Message::default();
        inner.integer(1, -1);
        inner.text(2, "ä");
        let mut message = Message::default();
        message.integer(1, 300);
        message.float(2, 1.5);
        message.double(3, -2.5);
        message.message(1_000, &inner);
        message.into_bytes()
    }

    #[test]
    fn written_messages_read_back() {
        let bytes = sample();
        let fields: Vec<Field<'_>> = Fields::new(&bytes).collect::<Result<_, _>>().unwrap();
        assert_eq!(fields[0].integer(), Ok(300));
        assert_eq!(fields[1].float(), Ok(1.5));
        assert_eq!(fields[2].fixed64s().unwrap().next(), Some(Ok((-2.5_f64).to_bits())));
        assert_eq!(fields[3].number, 1_000);
        let inner: Vec<Field<'_>> = fields[3].message().unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!(inner[0].integer(), Ok(-1));
        assert_eq!(inner[1].text(), Ok("ä"));
        let error = inner[1].integer().unwrap_err();
        assert_eq!(error.problem, ProtobufProblem::UnexpectedType(2));
        // The last two bytes of the file, even for a field of a nested message.
        assert_eq!(error.offset, bytes.len() - 2);
        assert_eq!(error.to_string(), "field 2 has an unexpected type at byte 33");
    }

    /// A message truncated between two fields is valid; truncated within a field, it is not.
    #[test]
    fn truncations_are_errors_or_fewer_fields() {
        let bytes = sample();
        for end in 0..bytes.len() {
            match collect(&bytes[..end]) {
                Ok(fields) => assert!(fields.len() < 4),
                Err(error) => {
                    assert_eq!(error.problem, ProtobufProblem::Truncated);
                    assert!(error.offset <= end);
                }
            }
        }
    }

    #[test]
    fn invalid_fields_are_refused() {
        // Wire types 3 and 4 start and end groups; 6 and 7 do not exist.
        for wire in [3, 4, 6, 7] {
            assert_eq!(problem(&[0x08, 1, 1 << 3 | wire]), (2, ProtobufProblem::WireType));
        }
        assert_eq!(problem(&[0x00, 1]), (0, ProtobufProblem::FieldNumber));
        let endless = [0xff; 11];
        assert_eq!(problem(&endless), (0, ProtobufProblem::LongInteger));
        let mut too_large = [0xff; 11];
        too_large[0] = 0x08;
        too_large[10] = 0x02;
        assert_eq!(problem(&too_large), (1, ProtobufProblem::LongInteger));
        too_large[10] = 0x01;
        assert_eq!(collect(&too_large).unwrap(), [(1, Value::Varint(u64::MAX))]);
        // A length of 2⁶⁴ − 1 allocates nothing.
        too_large[0] = 0x0a;
        assert_eq!(problem(&too_large), (11, ProtobufProblem::Truncated));
        let mut fields = Fields::new(&[0x0b, 0x08, 1]);
        assert!(fields.next().is_some_and(|field| field.is_err()));
        assert_eq!(fields.next(), None);
    }

    #[test]
    fn numbers_are_packed_or_single() {
        let mut message = Message::default();
        message.integer(1, 5);
        message.bytes(1, &[5, 0xac, 0x02]);
        message.bytes(1, &[0x80]);
        message.float(2, 1.0);
        message.bytes(2, &[0, 0, 128, 63, 0, 0, 0, 64]);
        message.bytes(2, &[0; 3]);
        message.bytes(3, &[0xff]);
        let bytes = message.into_bytes();
        let fields: Vec<Field<'_>> = Fields::new(&bytes).collect::<Result<_, _>>().unwrap();
        let integers = |n: usize| fields[n].varints().unwrap().collect::<Result<Vec<_>, _>>();
        assert_eq!(integers(0), Ok(vec![5]));
        assert_eq!(integers(1), Ok(vec![5, 300]));
        assert_eq!(integers(2).unwrap_err().problem, ProtobufProblem::Truncated);
        let floats = |n: usize| fields[n].fixed32s().unwrap().collect::<Result<Vec<_>, _>>();
        assert_eq!(floats(3), Ok(vec![1.0_f32.to_bits()]));
        assert_eq!(floats(4), Ok(vec![1.0_f32.to_bits(), 2.0_f32.to_bits()]));
        assert_eq!(floats(5).unwrap_err().problem, ProtobufProblem::Truncated);
        assert!(fields[3].varints().is_err());
        assert!(fields[0].fixed32s().is_err());
        assert_eq!(fields[6].text().unwrap_err().problem, ProtobufProblem::Text(3));
    }
}
