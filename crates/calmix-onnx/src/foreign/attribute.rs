//! Attributes of a foreign model's nodes: numbers, texts and dense tensors.

use calmix_io::protobuf::{Fields, Message};

use super::limits::MAX_LIST;
use super::problem::{ForeignProblem, check_max, name_of};
use super::tensor::{ForeignTensor, Storage};

/// Types in `AttributeProto.AttributeType`.
pub(crate) const FLOAT: i64 = 1;
pub(crate) const INT: i64 = 2;
const TEXT: i64 = 3;
const TENSOR: i64 = 4;
const GRAPH: i64 = 5;
const FLOATS: i64 = 6;
pub(crate) const INTS: i64 = 7;
const TEXTS: i64 = 8;
const GRAPHS: i64 = 10;
const SPARSE: i64 = 11;
const SPARSES: i64 = 12;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ForeignAttribute<'a> {
    pub(super) name: &'a str,
    pub(super) value: AttributeValue<'a>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum AttributeValue<'a> {
    Float(f32),
    Int(i64),
    Text(&'a [u8]),
    Tensor(ForeignTensor<'a>),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
    Texts(Vec<&'a [u8]>),
}

/// The fields of an `AttributeProto`.
#[derive(Default)]
struct Parts<'a> {
    name: &'a str,
    kind: i64,
    is_reference: bool,
    float: f32,
    int: i64,
    text: &'a [u8],
    tensor: Option<Fields<'a>>,
    floats: Vec<f32>,
    ints: Vec<i64>,
    texts: Vec<&'a [u8]>,
}

impl<'a> ForeignAttribute<'a> {
    /// Reads an `AttributeProto` of a node.
    pub(super) fn read(
        fields: Fields<'a>,
        node: &str,
        storage: &mut Storage<'_>,
    ) -> Result<Self, ForeignProblem> {
        let mut parts = Parts::default();
        for field in fields {
            let field = field?;
            match field.number {
                1 => parts.name = name_of(&field)?,
                2 => parts.float = field.float()?,
                3 => parts.int = field.integer()?,
                4 => parts.text = field.bytes()?,
                5 => parts.tensor = Some(field.message()?),
                7 => {
                    for bits in field.fixed32s()?.take(MAX_LIST + 1) {
                        parts.floats.push(f32::from_bits(bits?));
                    }
                }
                8 => {
                    for number in field.varints()?.take(MAX_LIST + 1) {
                        parts.ints.push(number?.cast_signed());
                    }
                }
                9 => parts.texts.push(field.bytes()?),
                20 => parts.kind = field.integer()?,
                21 => parts.is_reference = !field.bytes()?.is_empty(),
                // A graph, whatever type the attribute declares.
                6 | 11 => return Err(ForeignProblem::Subgraph { node: node.to_owned() }),
                22 | 23 => return Err(ForeignProblem::Sparse { place: node.to_owned() }),
                _ => {}
            }
            let values = parts.floats.len().max(parts.ints.len()).max(parts.texts.len());
            check_max(values, MAX_LIST, "attribute value")?;
        }
        let name = parts.name;
        Ok(Self { name, value: parts.into_value(node, storage)? })
    }

    /// Writes it as an `AttributeProto`.
    pub(super) fn write(&self, attribute: &mut Message, files: &[Vec<u8>]) {
        attribute.text(1, self.name);
        let kind = match &self.value {
            AttributeValue::Float(number) => {
                attribute.float(2, *number);
                FLOAT
            }
            AttributeValue::Int(number) => {
                attribute.integer(3, *number);
                INT
            }
            AttributeValue::Text(text) => {
                attribute.bytes(4, text);
                TEXT
            }
            AttributeValue::Tensor(tensor) => {
                attribute.nested(5, |message| tensor.write(message, "", files));
                TENSOR
            }
            AttributeValue::Floats(numbers) => {
                for &number in numbers {
                    attribute.float(7, number);
                }
                FLOATS
            }
            AttributeValue::Ints(numbers) => {
                for &number in numbers {
                    attribute.integer(8, number);
                }
                INTS
            }
            AttributeValue::Texts(texts) => {
                for text in texts {
                    attribute.bytes(9, text);
                }
                TEXTS
            }
        };
        attribute.integer(20, kind);
    }
}

impl<'a> Parts<'a> {
    fn into_value(self, node: &str, storage: &mut Storage<'_>) -> Result<AttributeValue<'a>, ForeignProblem> {
        let refused = |problem| ForeignProblem::Attribute {
            node: node.to_owned(),
            attribute: self.name.to_owned(),
            problem,
        };
        if self.is_reference {
            return Err(refused("refers to an attribute of a function"));
        }
        Ok(match self.kind {
            FLOAT => AttributeValue::Float(self.float),
            INT => AttributeValue::Int(self.int),
            TEXT => AttributeValue::Text(self.text),
            TENSOR => {
                let fields = self.tensor.ok_or_else(|| refused("has no tensor"))?;
                AttributeValue::Tensor(ForeignTensor::read(fields, Some(node), storage)?)
            }
            FLOATS => AttributeValue::Floats(self.floats),
            INTS => AttributeValue::Ints(self.ints),
            TEXTS => AttributeValue::Texts(self.texts),
            GRAPH | GRAPHS => return Err(ForeignProblem::Subgraph { node: node.to_owned() }),
            SPARSE | SPARSES => return Err(ForeignProblem::Sparse { place: node.to_owned() }),
            _ => return Err(refused("has an unsupported type")),
        })
    }
}
