//! Tables of numbers in NumPy's own format (`.npy`), such as CIFAR-10H's counts of votes.
//!
//! Written by hand: npyz brings eleven crates, a parser generator among them, for a header of one line.

use crate::error::DataProblem;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Bytes of the longest header; that of a table has about a hundred.
const LONGEST_HEADER: usize = 4096;

/// A table: rows one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct NpyTable {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// `rows` × `columns` numbers.
    pub values: Vec<f32>,
}

/// Reads a number from its bytes.
type ReadNumber = fn(&[u8]) -> Option<f64>;

/// Whether bytes begin like a file of this format.
pub fn is_npy(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Reads a table of two dimensions: whole numbers or floating-point numbers, little-endian, row after row. Nothing in
/// the file is executed; arrays of objects, which NumPy pickles, are refused.
///
/// # Errors
/// If it is anything else, or its length contradicts its header.
pub fn parse(bytes: &[u8]) -> Result<NpyTable, DataProblem> {
    let wrong = |what: &str| DataProblem::Format(what.to_owned());
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| wrong("this is not a .npy file"))?;
    let (length, rest) = match rest {
        [1, 0, a, b, rest @ ..] => (usize::from(u16::from_le_bytes([*a, *b])), rest),
        [2 | 3, 0, a, b, c, d, rest @ ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest),
        _ => return Err(wrong("calmix does not know this version of .npy")),
    };
    if length > LONGEST_HEADER {
        return Err(DataProblem::Limit(format!("its header is too long: {length} bytes")));
    }
    let (header, data) =
        rest.split_at_checked(length).ok_or_else(|| wrong("the file ends inside its header"))?;
    let header = str::from_utf8(header).map_err(|_| wrong("its header is not text"))?;
    if value_of(header, "fortran_order") != Some("False") {
        return Err(wrong("it is in Fortran order: save `np.ascontiguousarray` of the array"));
    }
    let (rows, columns) =
        shape(header).ok_or_else(|| wrong("it is not a table of rows and columns (two dimensions)"))?;
    let kind = value_of(header, "descr").unwrap_or_default().trim_matches(['\'', '"']);
    let (width, number): (usize, ReadNumber) = match kind {
        "|u1" => (1, |bytes| Some(u8::from_le_bytes(bytes.try_into().ok()?).into())),
        "|i1" => (1, |bytes| Some(i8::from_le_bytes(bytes.try_into().ok()?).into())),
        "<i2" => (2, |bytes| Some(i16::from_le_bytes(bytes.try_into().ok()?).into())),
        "<i4" => (4, |bytes| Some(i32::from_le_bytes(bytes.try_into().ok()?).into())),
        "<i8" => (8, |bytes| Some(i64::from_le_bytes(bytes.try_into().ok()?) as f64)),
        "<f4" => (4, |bytes| Some(f32::from_le_bytes(bytes.try_into().ok()?).into())),
        "<f8" => (8, |bytes| Some(f64::from_le_bytes(bytes.try_into().ok()?))),
        _ => {
            return Err(wrong(
                "calmix does not read its type of numbers: save `.astype('int64')` of the array",
            ));
        }
    };
    let expected = rows.checked_mul(columns).and_then(|count| count.checked_mul(width));
    if expected != Some(data.len()) {
        return Err(DataProblem::Format(format!(
            "{} bytes of numbers, expected {rows} × {columns} of {width} bytes",
            data.len()
        )));
    }
    let values = data.chunks_exact(width).map(|bytes| number(bytes).unwrap_or(f64::NAN) as f32).collect();
    Ok(NpyTable { rows, columns, values })
}

/// The value of a key in the header, which is a Python literal.
fn value_of<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = header.split_once(key)?;
    let rest = rest.strip_prefix(['\'', '"'])?.trim_start().strip_prefix(':')?.trim_start();
    let end = if rest.starts_with('(') { rest.find(')')? + 1 } else { rest.find([',', '}'])? };
    Some(rest[..end].trim())
}

fn shape(header: &str) -> Option<(usize, usize)> {
    let text = value_of(header, "shape")?.strip_prefix('(')?.strip_suffix(')')?;
    let mut sizes = text.split(',').map(str::trim).filter(|size| !size.is_empty()).map(str::parse);
    let (rows, columns) = (sizes.next()?.ok()?, sizes.next()?.ok()?);
    (sizes.next().is_none() && columns > 0).then_some((rows, columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `numpy.save` writes it.
    fn file(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
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
            file("<f4", "(2, 3)", &numbers.map(|n| f32::from(n).to_le_bytes()).concat()),
            file("<f8", "(2, 3)", &numbers.map(|n| f64::from(n).to_le_bytes()).concat()),
        ];
        for file in files {
            assert!(is_npy(&file));
            assert_eq!(parse(&file).unwrap(), expected);
            // Cut anywhere, it is refused.
            for end in 0..file.len() {
                assert!(parse(&file[..end]).is_err(), "cut at {end}");
            }
        }
    }

    #[test]
    fn npy_other_than_tables_is_refused() {
        let long = file("<i8", "(4294967296, 4294967296)", &[0; 8]);
        let files = [
            file("|O", "(1, 1)", &[0; 8]),
            file("<i8", "(1,)", &[0; 8]),
            file(">i8", "(1, 1)", &[0; 8]),
            long,
        ];
        for file in files {
            assert!(parse(&file).is_err());
        }
        let mut fortran = file("<i8", "(1, 1)", &[0; 8]);
        let at = fortran.windows(5).position(|part| part == b"False").unwrap();
        fortran[at..at + 5].copy_from_slice(b"True ");
        assert!(parse(&fortran).is_err());
    }
}
