//! Reads and writes protocol buffer messages field by field. TensorBoard and ONNX need a few dozen fields, so a schema
//! compiler and its output would be longer than these files and the code that calls them.
//!
//! A field consists of a key (its number times eight plus its wire type) and a value. The order of fields does not matter,
//! and an absent field has its default, zero or empty.

mod message;
mod reader;

pub use message::Message;
pub use reader::{Field, Fields, Packed, ProtobufError, ProtobufProblem, Value};

/// The wire types, which are the lower three bits of a key.
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const BYTES: u64 = 2;
const FIXED_32: u64 = 5;
