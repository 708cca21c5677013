//! The safetensors format: the length of a JSON object, the object, and the tensors it describes, without holes.
//!
//! Read and written here rather than by its library, which copies every file once in memory each way; tests
//! compare the two. Reading is stricter: a name comes once, a header is short, and nothing is skipped.

use std::fmt;

use calmix_data::error::Problem;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::tensor::{Dtype, Tensor};

/// Bytes of the longest header: ten thousand tensors. A longer one is refused before it is parsed.
pub const LONGEST_HEADER: u64 = 1 << 20;
/// The most axes of a tensor.
pub const MOST_AXES: usize = 8;
/// Bytes of the longest name of a tensor.
pub const LONGEST_NAME: usize = 256;

/// What the header says of a tensor.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    dtype: Dtype,
    shape: Vec<u64>,
    #[serde(rename = "data_offsets")]
    range: (u64, u64),
}

/// All tensors in the order of their bytes; in the file a map from names to entries.
#[derive(Debug)]
struct Header(Vec<(String, Entry)>);

/// The first bytes of a file of `tensors`, which are then to be written in the order that this gives them:
/// large elements first, so that all are aligned, then by name.
pub(super) fn begin(tensors: &mut [(&str, &Tensor<'_>)]) -> Result<Vec<u8>, Problem> {
    tensors.sort_by_key(|(name, tensor)| (std::cmp::Reverse(tensor.dtype.size()), *name));
    let mut end = 0;
    let entries = tensors.iter().map(|(name, tensor)| {
        let start = end;
        end += tensor.bytes.len() as u64;
        let entry = Entry { dtype: tensor.dtype, shape: tensor.shape.clone(), range: (start, end) };
        ((*name).to_owned(), entry)
    });
    let header = Header(entries.collect());
    check(&header.0, end)?;
    let mut json = serde_json::to_vec(&header).map_err(|error| Problem::Format(error.to_string()))?;
    // The format allows spaces here, to align what follows.
    json.resize(json.len().next_multiple_of(8), b' ');
    let length = json.len() as u64;
    if length > LONGEST_HEADER {
        return Err(Problem::Limit(format!("a header of {length} bytes, more than {LONGEST_HEADER}")));
    }
    Ok([&length.to_le_bytes()[..], &json].concat())
}

/// The tensors of a file: a file's bytes, and where in them each tensor is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensors {
    bytes: Vec<u8>,
    begin: usize,
    entries: Vec<(String, Entry)>,
}

impl Tensors {
    /// Reads the header of a file that is in memory.
    ///
    /// # Errors
    /// If the bytes are not what their header says, or the header says more than [`LONGEST_HEADER`].
    pub fn parse(bytes: Vec<u8>) -> Result<Self, Problem> {
        let format = |problem: String| Problem::Format(problem);
        let (length, rest) =
            bytes.split_first_chunk().ok_or_else(|| format("shorter than 8 bytes".to_owned()))?;
        let length = u64::from_le_bytes(*length);
        if length > LONGEST_HEADER {
            return Err(Problem::Limit(format!("a header of {length} bytes, more than {LONGEST_HEADER}")));
        }
        let (json, data) = rest
            .split_at_checked(length as usize)
            .ok_or_else(|| format(format!("a header of {length} bytes in a file of {}", bytes.len())))?;
        let Header(mut entries) =
            serde_json::from_slice(json).map_err(|error| format(format!("its header: {error}")))?;
        entries.sort_by_key(|(_, entry)| entry.range);
        check(&entries, data.len() as u64)?;
        let begin = bytes.len() - data.len();
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(Self { bytes, begin, entries })
    }

    /// Their names, sorted.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.entries.iter().map(|(name, _)| name.as_str())
    }

    /// The tensor of this name.
    pub fn get(&self, name: &str) -> Option<Tensor<'_>> {
        let found = self.entries.binary_search_by(|(entry, _)| entry.as_str().cmp(name)).ok()?;
        let (_, entry) = self.entries.get(found)?;
        let range = self.begin + entry.range.0 as usize..self.begin + entry.range.1 as usize;
        Some(Tensor::new(entry.dtype, &entry.shape, self.bytes.get(range)?))
    }

    /// Whether these are exactly the declared tensors: no name more or less, every type and shape the same.
    ///
    /// # Errors
    /// Names the first that differs.
    pub fn check<'a>(
        &self,
        declared: impl IntoIterator<Item = (&'a str, Dtype, &'a [u64])>,
    ) -> Result<(), Problem> {
        let content = |problem: String| Err(Problem::Content(problem));
        let mut names = Vec::new();
        for (name, dtype, shape) in declared {
            let Some(found) = self.get(name) else { return content(format!("there is no tensor {name:?}")) };
            if (found.dtype, &*found.shape) != (dtype, shape) {
                let (is, was) = (found.dtype, found.shape);
                return content(format!("{name:?} is {is:?}{was:?}, but should be {dtype:?}{shape:?}"));
            }
            names.push(name);
        }
        names.sort_unstable();
        match self.names().find(|name| names.binary_search(name).is_err()) {
            Some(name) => content(format!("a tensor {name:?} that nothing here is called")),
            None => Ok(()),
        }
    }
}

/// Whether entries, in the order of their bytes, have good names and cover `length` bytes without hole or
/// overlap.
fn check(entries: &[(String, Entry)], length: u64) -> Result<(), Problem> {
    let mut end = 0;
    for (name, Entry { dtype, shape, range }) in entries {
        if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
            return Err(Problem::Format(format!("a tensor named {name:?}")));
        }
        if shape.len() > MOST_AXES {
            return Err(Problem::Limit(format!("tensor {name:?} has {} axes", shape.len())));
        }
        let size = range.1.checked_sub(range.0);
        if range.0 != end || size.is_none() || size != dtype.bytes(shape) {
            let (from, to) = range;
            let problem = format!("tensor {name:?}, {dtype:?}{shape:?}, in bytes {from} to {to} after {end}");
            return Err(Problem::Format(problem));
        }
        end = range.1;
    }
    if end != length {
        return Err(Problem::Format(format!("tensors of {end} bytes in {length} bytes")));
    }
    let mut names: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    match names.array_windows().find(|[a, b]| a == b) {
        Some([name, _]) => Err(Problem::Format(format!("two tensors named {name:?}"))),
        None => Ok(()),
    }
}

impl Serialize for Header {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|(name, entry)| map.serialize_entry(name, entry))?;
        map.end()
    }
}

/// By hand, because a map would forget that a name came twice.
impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Header;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("tensors by name")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Header, M::Error> {
                let mut entries = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    let entry = map.next_value();
                    entries.push((
                        name.clone(),
                        entry.map_err(|error| M::Error::custom(format!("tensor {name:?}: {error}")))?,
                    ));
                }
                Ok(Header(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}
