//! Tables as Parquet files: one row group, plain values, no compression.
//!
//! The crate `parquet` would bring ten more crates, 170,000 lines and a second version of one that is here, to write seven columns
//! of three types. Readers of Parquet accept this subset; a test reads it back with pyarrow.

mod thrift;

use thrift::{ThriftStruct, varint};

const MAGIC: &[u8; 4] = b"PAR1";
/// Numbers of the format: encodings, the kind of page, the codec, and what a group of a list is called.
const PLAIN: usize = 0;
const RLE: usize = 3;
const DATA_PAGE: usize = 0;
const UNCOMPRESSED: usize = 0;
const LIST: usize = 3;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellKind {
    Text,
    Float,
    Bool,
}

/// How many cells a row has in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellCount {
    One,
    /// One or none, which reads as null.
    Optional,
    /// Any number; none at all reads as null.
    List,
}

/// A value of a column. A column of another kind takes it for its own bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cell<'a> {
    Text(&'a str),
    Float(f32),
    Bool(bool),
}

/// A column, which grows row by row.
#[derive(Debug)]
pub(crate) struct ParquetColumn {
    name: &'static str,
    kind: CellKind,
    count: CellCount,
    /// For each entry, whether it goes on with the list of the entry before.
    repetitions: Vec<u8>,
    /// For each entry, how much of it is there: 0 is null.
    definitions: Vec<u8>,
    /// Plain bytes; of booleans, a byte each.
    values: Vec<u8>,
}

impl ParquetColumn {
    pub(crate) fn new(name: &'static str, kind: CellKind, count: CellCount) -> Self {
        Self { name, kind, count, repetitions: Vec::new(), definitions: Vec::new(), values: Vec::new() }
    }

    /// Adds the row of a column that is no list.
    pub(crate) fn add(&mut self, cell: Option<Cell<'_>>) {
        self.definitions.push(u8::from(cell.is_some()));
        if let Some(cell) = cell {
            self.put(cell);
        }
    }

    /// Adds the row of a list.
    pub(crate) fn add_list<'a>(&mut self, cells: Option<impl Iterator<Item = Cell<'a>>>) {
        let is_null = cells.is_none();
        let before = self.definitions.len();
        for cell in cells.into_iter().flatten() {
            self.repetitions.push(u8::from(self.definitions.len() > before));
            self.definitions.push(2);
            self.put(cell);
        }
        if self.definitions.len() == before {
            self.repetitions.push(0);
            self.definitions.push(u8::from(!is_null));
        }
    }

    fn put(&mut self, cell: Cell<'_>) {
        match cell {
            Cell::Text(text) => {
                self.values.extend((text.len() as u32).to_le_bytes());
                self.values.extend(text.as_bytes());
            }
            Cell::Float(value) => self.values.extend(value.to_le_bytes()),
            Cell::Bool(value) => self.values.push(value.into()),
        }
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.values.len() + self.definitions.len() + self.repetitions.len()
    }

    /// The number of the type that stands in the file.
    fn physical_type(&self) -> usize {
        match self.kind {
            CellKind::Bool => 0,
            CellKind::Float => 4,
            CellKind::Text => 6,
        }
    }

    fn path(&self) -> Vec<&str> {
        match self.count {
            CellCount::List => vec![self.name, "list", "element"],
            _ => vec![self.name],
        }
    }

    /// The entries of the schema. A list is a group of a repeated group of elements, as the format asks for.
    fn schema(&self) -> Vec<ThriftStruct> {
        let leaf = |name, repetition| {
            let entry = ThriftStruct::default().i32(1, self.physical_type()).i32(3, repetition).text(4, name);
            // Bytes that are UTF-8.
            if self.kind == CellKind::Text { entry.i32(6, 0) } else { entry }
        };
        let group = |name, repetition| ThriftStruct::default().i32(3, repetition).text(4, name).i32(5, 1);
        let (required, optional, repeated) = (0, 1, 2);
        match self.count {
            CellCount::One => vec![leaf(self.name, required)],
            CellCount::Optional => vec![leaf(self.name, optional)],
            CellCount::List => {
                vec![
                    group(self.name, optional).i32(6, LIST),
                    group("list", repeated),
                    leaf("element", required),
                ]
            }
        }
    }

    /// The column's only page, with its header.
    fn page(&self) -> Vec<u8> {
        let mut body = Vec::new();
        if self.count == CellCount::List {
            levels(&mut body, &self.repetitions, 1);
        }
        match self.count {
            CellCount::One => {}
            CellCount::Optional => levels(&mut body, &self.definitions, 1),
            CellCount::List => levels(&mut body, &self.definitions, 2),
        }
        match self.kind {
            CellKind::Bool => body.extend(packed(&self.values, 1)),
            _ => body.extend(&self.values),
        }
        let size = body.len();
        let data =
            ThriftStruct::default().i32(1, self.definitions.len()).i32(2, PLAIN).i32(3, RLE).i32(4, RLE);
        let header = ThriftStruct::default().i32(1, DATA_PAGE).i32(2, size).i32(3, size).structure(5, data);
        [header.end(), body].concat()
    }
}

/// The bytes of a file of these columns, which have the same number of rows, with texts about it.
pub(crate) fn parquet_file(columns: &[ParquetColumn], rows: usize, about: &[(&str, &str)]) -> Vec<u8> {
    let (mut file, mut chunks) = (MAGIC.to_vec(), Vec::new());
    for column in columns {
        let (page, offset) = (column.page(), file.len());
        let size = page.len();
        let chunk = ThriftStruct::default()
            .i32(1, column.physical_type())
            .i32s(2, &[PLAIN, RLE])
            .texts(3, &column.path())
            .i32(4, UNCOMPRESSED)
            .i64(5, column.definitions.len())
            .i64(6, size)
            .i64(7, size)
            .i64(9, offset);
        chunks.push(ThriftStruct::default().i64(2, offset).structure(3, chunk));
        file.extend(page);
    }
    let group = ThriftStruct::default().structures(1, chunks).i64(2, file.len() - 4).i64(3, rows);
    let root = ThriftStruct::default().text(4, "schema").i32(5, columns.len());
    let schema = std::iter::once(root).chain(columns.iter().flat_map(ParquetColumn::schema)).collect();
    let texts =
        about.iter().map(|(key, value)| ThriftStruct::default().text(1, key).text(2, value)).collect();
    let footer = ThriftStruct::default()
        .i32(1, 1)
        .structures(2, schema)
        .i64(3, rows)
        .structures(4, vec![group])
        .structures(5, texts)
        .text(6, concat!("calmix version ", env!("CARGO_PKG_VERSION")))
        .end();
    file.extend(&footer);
    file.extend((footer.len() as u32).to_le_bytes());
    file.extend(MAGIC);
    file
}

/// Levels of so many bits each: their length in bytes, and one run of bit-packed groups of eight.
fn levels(body: &mut Vec<u8>, levels: &[u8], bits: usize) {
    let mut run = Vec::new();
    varint(&mut run, ((levels.len().div_ceil(8) as u64) << 1) | 1);
    run.extend(packed(levels, bits));
    body.extend((run.len() as u32).to_le_bytes());
    body.extend(run);
}

/// Numbers of so many bits each, the lowest bits first, in whole groups of eight numbers.
fn packed(numbers: &[u8], bits: usize) -> Vec<u8> {
    let mut bytes = vec![0_u8; numbers.len().div_ceil(8) * bits];
    for (n, number) in numbers.iter().enumerate() {
        // Widths of 1 and 2 never cross the end of a byte.
        bytes[n * bits / 8] |= number << (n * bits % 8);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nulls, a list of two and an empty one, as Dremel's levels say them.
    #[test]
    fn lists_are_levels() {
        let mut column = ParquetColumn::new("set", CellKind::Text, CellCount::List);
        let none = None::<std::array::IntoIter<Cell<'_>, 0>>;
        column.add_list(none.clone());
        column.add_list(Some([Cell::Text("a"), Cell::Text("bc")].into_iter()));
        column.add_list(Some([].into_iter()));
        column.add_list(none);
        assert_eq!(column.repetitions, [0, 0, 1, 0, 0]);
        assert_eq!(column.definitions, [0, 2, 2, 1, 0]);
        assert_eq!(column.values, b"\x01\0\0\0a\x02\0\0\0bc");
        assert_eq!(packed(&column.definitions, 2), [0b0110_1000, 0]);
        assert_eq!(packed(&[1, 0, 0, 0, 0, 0, 0, 1, 1], 1), [0b1000_0001, 1]);
    }
}
