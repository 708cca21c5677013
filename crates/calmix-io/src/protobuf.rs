//! Messages of protocol buffers, written and read field by field. TensorBoard's and ONNX's use a few dozen fields, so that a compiler
//! of their schemas and its output would be longer than these files and the code that calls them.
//!
//! A field is a key (its number times eight plus the type of its value) and the value. The order of fields does not matter, and
//! a field that is absent has its default, which is zero or empty.

mod message;
mod reader;

pub use message::Message;
pub use reader::{Field, Fields, Packed, ProtobufError, ProtobufProblem, Value};

/// The types of a value, the lower three bits of a key.
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const BYTES: u64 = 2;
const FIXED_32: u64 = 5;
