//! Arrays in NumPy's `.npy` format: tables such as CIFAR-10H's vote counts, vectors, labels.
//!
//! Written by hand: npyz brings eleven crates, including a parser generator, for a header of one line.

use std::io::{self, Read};

use crate::element_type::ElementType;
use crate::error::FormatProblem;

const MAGIC: &[u8] = b"\x93NUMPY";
/// The maximum size of a header, in bytes; that of a table has about a hundred.
const MAX_HEADER_BYTES: usize = 4096;
/// The maximum number of dimensions in NumPy.
const MAX_DIMENSIONS: usize = 64;

/// The header of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpyHeader {
    /// The type of its items.
    pub item: NpyType,
    /// The shape, in order.
    pub shape: Vec<u64>,
    /// The offset of the first item.
    pub start: u64,
}

/// The type of an array's items, all little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NpyType {
    /// Floating-point numbers.
    Float(ElementType),
    /// Integers of this many bytes.
    Int {
        /// 1, 2, 4 or 8 bytes.
        bytes: usize,
        /// Whether they may be negative.
        signed: bool,
    },
    /// Text of at most this many characters, four bytes each.
    Text {
        /// At most [`MAX_TEXT_CHARS`](Self::MAX_TEXT_CHARS).
        characters: usize,
    },
}

impl NpyType {
    /// The maximum length of a text, in characters: labels and file names are shorter.
    pub const MAX_TEXT_CHARS: usize = 4096;

    /// Returns the size of an item, in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::Float(number) => number.bytes(),
            Self::Int { bytes, .. } => bytes,
            Self::Text { characters } => 4 * characters,
        }
    }

    /// Decodes the integer stored in `item`; 0 for items of another type.
    pub fn int(self, item: &[u8]) -> i128 {
        let Self::Int { signed, .. } = self else { return 0 };
        let is_negative = signed && item.last().is_some_and(|&byte| byte >= 0x80);
        let start = if is_negative { -1_i128 } else { 0 };
        item.iter().rev().fold(start, |number, &byte| number << 8 | i128::from(byte))
    }
}

/// A table in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub struct NpyTable {
    pub rows: usize,
    pub columns: usize,
    /// `rows` × `columns` numbers.
    pub values: Vec<f32>,
}

/// Returns whether bytes start like a file in this format.
pub fn is_npy(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

impl NpyHeader {
    /// Reads the header of an array and leaves the reader at its first item. Nothing in the file is executed; object arrays,
    /// which NumPy pickles, are refused.
    ///
    /// # Errors
    /// If it is not an array, or not a C-order array of little-endian numbers or text.
    pub fn read(from: &mut dyn Read) -> Result<Self, FormatProblem> {
        let mut prefix = [0; 8];
        fill(from, &mut prefix, "this is not a .npy file")?;
        let version = prefix.strip_prefix(MAGIC).ok_or_else(|| wrong("this is not a .npy file"))?;
        let bytes_of_length = match version {
            [1, 0] => 2,
            [2 | 3, 0] => 4,
            _ => return Err(wrong("calmix does not know this version of .npy")),
        };
        let mut length = [0; 4];
        fill(from, &mut length[..bytes_of_length], TRUNCATED)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_HEADER_BYTES {
            return Err(FormatProblem::Limit(format!("its header is too long: {length} bytes")));
        }
        let mut header = vec![0; length];
        fill(from, &mut header, TRUNCATED)?;
        let header = str::from_utf8(&header).map_err(|_| wrong("its header is not text"))?;
        let item = item(value_of(header, "descr").unwrap_or_default())?;
        if value_of(header, "fortran_order") != Some("False") {
            return Err(wrong(
                "it is in Fortran order: save it again with \
                 `np.save('new.npy', np.ascontiguousarray(np.load('old.npy')))`",
            ));
        }
        let shape = shape(header).ok_or_else(|| wrong("its shape is missing or not a tuple of sizes"))?;
        Ok(Self { item, shape, start: (8 + bytes_of_length + length) as u64 })
    }

    /// Returns the size of all items, in bytes; `None` if no file could hold them.
    pub fn data_bytes(&self) -> Option<u64> {
        let items = self.shape.iter().try_fold(1_u64, |items, &size| items.checked_mul(size));
        items?.checked_mul(self.item.bytes() as u64)
    }
}

/// Reads a two-dimensional table of integers or floating-point numbers, row by row.
///
/// # Errors
/// If it is anything else, or its length contradicts its header.
pub fn parse(bytes: &[u8]) -> Result<NpyTable, FormatProblem> {
    let mut data = bytes;
    let header = NpyHeader::read(&mut data)?;
    let [rows, columns] = header.shape[..] else {
        return Err(wrong("it is not a table of rows and columns (two dimensions)"));
    };
    if columns == 0 {
        return Err(wrong("it has no columns"));
    }
    let width = header.item.bytes();
    if header.data_bytes() != Some(data.len() as u64) {
        return Err(FormatProblem::Format(format!(
            "{} bytes of numbers, expected {rows} × {columns} of {width} bytes",
            data.len()
        )));
    }
    let mut values = Vec::new();
    match header.item {
        NpyType::Float(number) => number.append(data, &mut values),
        NpyType::Int { .. } => {
            values.extend(data.chunks_exact(width).map(|bytes| header.item.int(bytes) as f32));
        }
        NpyType::Text { .. } => return Err(wrong("it holds text instead of numbers")),
    }
    Ok(NpyTable { rows: rows as usize, columns: columns as usize, values })
}

const TRUNCATED: &str = "the file ends inside its header";

fn wrong(what: &str) -> FormatProblem {
    FormatProblem::Format(what.to_owned())
}

/// Fills `into`; the error is `cut` if there are not enough bytes.
fn fill(from: &mut dyn Read, into: &mut [u8], cut: &str) -> Result<(), FormatProblem> {
    from.read_exact(into).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => wrong(cut),
        _ => FormatProblem::Io(error),
    })
}

/// Returns the value of a key in the header, which is a Python literal.
fn value_of<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = header.split_once(key)?;
    let rest = rest.strip_prefix(['\'', '"'])?.trim_start().strip_prefix(':')?.trim_start();
    let end = if rest.starts_with('(') { rest.find(')')? + 1 } else { rest.find([',', '}'])? };
    Some(rest[..end].trim())
}

fn item(descr: &str) -> Result<NpyType, FormatProblem> {
    let descr = descr.trim_matches(['\'', '"']);
    let int = |bytes, signed| Ok(NpyType::Int { bytes, signed });
    match descr {
        "<f2" => Ok(NpyType::Float(ElementType::F16)),
        "<f4" => Ok(NpyType::Float(ElementType::F32)),
        "<f8" => Ok(NpyType::Float(ElementType::F64)),
        "|u1" | "|b1" => int(1, false),
        "|i1" => int(1, true),
        "<u2" => int(2, false),
        "<i2" => int(2, true),
        "<u4" => int(4, false),
        "<i4" => int(4, true),
        "<u8" => int(8, false),
        "<i8" => int(8, true),
        "|O" | "O" => Err(wrong(
            "it holds Python objects (a pickle), which can run code when they are loaded; convert it with \
             `np.save('new.npy', np.stack(np.load('old.npy', allow_pickle=True)).astype('float32'))`",
        )),
        _ => match descr.strip_prefix("<U").and_then(|characters| characters.parse().ok()) {
            Some(characters) if (1..=NpyType::MAX_TEXT_CHARS).contains(&characters) => {
                Ok(NpyType::Text { characters })
            }
            _ => Err(wrong(
                "calmix does not read its type of numbers: save `.astype('float32')` of the array, or \
                 `.astype('int64')` of whole numbers",
            )),
        },
    }
}

fn shape(header: &str) -> Option<Vec<u64>> {
    let text = value_of(header, "shape")?.strip_prefix('(')?.strip_suffix(')')?;
    let sizes = text.split(',').map(str::trim).filter(|size| !size.is_empty());
    let sizes: Vec<u64> =
        sizes.take(MAX_DIMENSIONS + 1).map(|size| size.parse().ok()).collect::<Option<_>>()?;
    (sizes.len() <= MAX_DIMENSIONS).then_some(sizes)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Builds a file as `numpy.save` does.
    pub(crate) fn file(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        header += &" ".repeat(117 - header.len());
        header.push('\n');
        [MAGIC, &[1, 0, 118, 0], header.as_bytes(), data].concat()
    }

    #[test]
    fn tables_of_every_kind_are_read() {
        let expected = NpyTable { rows: 2, columns: 3, values: vec![0.0, 1.0, 51.0, 3.0, 2.0, 7.0] };
        let numbers = [0_i8, 1, 51, 3, 2, 7];
        let files = [
            file("|u1", "(2, 3)", &numbers.map(i8::cast_unsigned)),
            file("|i1", "(2, 3)", &numbers.map(i8::cast_unsigned)),
            file("<i2", "(2, 3)", &numbers.map(|n| i16::from(n).to_le_bytes()).concat()),
            file("<i4", "(2, 3)", &numbers.map(|n| i32::from(n).to_le_bytes()).concat()),
            file("<i8", "(2, 3)", &numbers.map(|n| i64::from(n).to_le_bytes()).concat()),
            file("<f2", "(2, 3)", &numbers.map(|n| half::f16::from(n).to_le_bytes()).concat()),
            file("<f4", "(2, 3)", &numbers.map(|n| f32::from(n).to_le_bytes()).concat()),
            file("<f8", "(2, 3)", &numbers.map(|n| f64::from(n).to_le_bytes()).concat()),
        ];
        for file in files {
            assert!(is_npy(&file));
            assert_eq!(parse(&file).unwrap(), expected);
            // Truncated anywhere, it is refused.
            for end in 0..file.len() {
                assert!(parse(&file[..end]).is_err(), "cut at {end}");
            }
        }
        let negative = file("<i4", "(1, 2)", &[-1_i32, i32::MIN].map(i32::to_le_bytes).concat());
        assert_eq!(parse(&negative).unwrap().values, [-1.0, i32::MIN as f32]);
    }

    #[test]
    fn npy_other_than_tables_is_refused() {
        let long = file("<i8", "(4294967296, 4294967296)", &[0; 8]);
        let files = [
            file("|O", "(1, 1)", &[0; 8]),
            file("<i8", "(1,)", &[0; 8]),
            file("<U2", "(1, 1)", &[0; 8]),
            file(">i8", "(1, 1)", &[0; 8]),
            long,
        ];
        for file in files {
            assert!(parse(&file).is_err());
        }
        let mut fortran = file("<i8", "(1, 1)", &[0; 8]);
        let at = fortran.windows(5).position(|part| part == b"False").unwrap();
        fortran[at..at + 5].copy_from_slice(b"True ");
        assert!(parse(&fortran).unwrap_err().to_string().contains("np.ascontiguousarray"));
    }
}
