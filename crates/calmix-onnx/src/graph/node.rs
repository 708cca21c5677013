//! Nodes of a graph that is being built, and their attributes.

use calmix_io::protobuf::Message;

/// The setting of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    /// One integer.
    Int(i64),
    /// Several integers.
    Ints(Vec<i64>),
    /// A number.
    Float(f32),
}

/// A node with one output.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) operator: &'static str,
    pub(super) inputs: Vec<String>,
    pub(super) output: String,
    pub(super) attributes: Vec<(&'static str, Attribute)>,
}

impl Node {
    pub(super) fn to_message(&self) -> Message {
        let mut node = Message::default();
        for input in &self.inputs {
            node.text(1, input);
        }
        node.text(2, &self.output);
        node.text(3, &self.output);
        node.text(4, self.operator);
        for (name, attribute) in &self.attributes {
            node.message(5, &attribute.to_message(name));
        }
        node
    }
}

impl Attribute {
    fn to_message(&self, name: &str) -> Message {
        /// The numbers of the types in `AttributeProto.AttributeType`.
        const FLOAT: i64 = 1;
        const INT: i64 = 2;
        const INTS: i64 = 7;
        let mut attribute = Message::default();
        attribute.text(1, name);
        let kind = match self {
            Self::Float(number) => {
                attribute.float(2, *number);
                FLOAT
            }
            Self::Int(number) => {
                attribute.integer(3, *number);
                INT
            }
            Self::Ints(numbers) => {
                for &number in numbers {
                    attribute.integer(8, number);
                }
                INTS
            }
        };
        attribute.integer(20, kind);
        attribute
    }
}
