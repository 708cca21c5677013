//! A graph of plain nodes that becomes the bytes of an ONNX file: opset 17, IR version 8, any number of rows.

use std::collections::BTreeSet;

use calmix_io::protobuf::Message;

use crate::tensor::{ElementType, Tensor};

/// The version of the operators. Nothing in the graphs needs a later one, and most runtimes have this one.
const OPSET: i64 = 17;
/// The version of the file format that goes with it.
const IR_VERSION: i64 = 8;
/// The name of the number of rows, which is any.
const ROWS: &str = "N";

/// The name of a value of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value(String);

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

#[derive(Debug, Clone)]
struct Node {
    operator: &'static str,
    inputs: Vec<String>,
    output: String,
    attributes: Vec<(&'static str, Attribute)>,
}

/// An input or an output: N rows of this shape.
#[derive(Debug, Clone)]
struct Port {
    name: String,
    element: ElementType,
    shape: Vec<usize>,
}

/// A graph that is being built.
#[derive(Debug, Default)]
pub struct Graph {
    nodes: Vec<Node>,
    constants: Vec<Tensor>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
}

impl Graph {
    /// Adds an input of N rows of this shape.
    pub fn input(&mut self, name: &str, element: ElementType, shape: &[usize]) -> Value {
        self.inputs.push(Port { name: name.to_owned(), element, shape: shape.to_vec() });
        Value(name.to_owned())
    }

    /// Makes a value an output: N rows of this shape.
    pub fn output(&mut self, name: &str, value: &Value, element: ElementType, shape: &[usize]) {
        self.nodes.push(Node {
            operator: "Identity",
            inputs: vec![value.0.clone()],
            output: name.to_owned(),
            attributes: Vec::new(),
        });
        self.outputs.push(Port { name: name.to_owned(), element, shape: shape.to_vec() });
    }

    /// Adds a constant. A name that is taken already stands for the constant that has it.
    pub fn constant(&mut self, tensor: Tensor) -> Value {
        let value = Value(tensor.name().to_owned());
        if !self.constants.iter().any(|constant| constant.name() == tensor.name()) {
            self.constants.push(tensor);
        }
        value
    }

    /// Adds a node with one output.
    pub fn node(&mut self, operator: &'static str, inputs: &[&Value]) -> Value {
        self.node_with(operator, inputs, Vec::new())
    }

    /// Adds a node with attributes and one output.
    pub fn node_with(
        &mut self,
        operator: &'static str,
        inputs: &[&Value],
        attributes: Vec<(&'static str, Attribute)>,
    ) -> Value {
        let output = format!("{operator}_{}", self.nodes.len());
        let inputs = inputs.iter().map(|value| value.0.clone()).collect();
        self.nodes.push(Node { operator, inputs, output: output.clone(), attributes });
        Value(output)
    }

    /// Adds a cast to a type of numbers.
    pub fn cast(&mut self, value: &Value, to: ElementType) -> Value {
        self.node_with("Cast", &[value], vec![("to", Attribute::Int(to as i64))])
    }

    /// The bytes of the file. Nodes and constants that no output depends on are left out.
    pub fn into_bytes(self, metadata: &[(String, String)]) -> Vec<u8> {
        let mut model = Message::default();
        model.integer(1, IR_VERSION);
        model.text(2, "calmix");
        model.text(3, env!("CARGO_PKG_VERSION"));
        model.message(7, &self.into_message());
        let mut operators = Message::default();
        operators.text(1, "");
        operators.integer(2, OPSET);
        model.message(8, &operators);
        for (key, value) in metadata {
            let mut entry = Message::default();
            entry.text(1, key);
            entry.text(2, value);
            model.message(14, &entry);
        }
        model.into_bytes()
    }

    fn into_message(self) -> Message {
        let mut needed: BTreeSet<&str> = self.outputs.iter().map(|port| port.name.as_str()).collect();
        let mut nodes = Vec::new();
        // A node stands after those that it reads, so that one pass from the end finds all that are needed.
        for node in self.nodes.iter().rev() {
            if needed.contains(node.output.as_str()) {
                needed.extend(node.inputs.iter().map(String::as_str));
                nodes.push(node);
            }
        }
        let mut graph = Message::default();
        for node in nodes.into_iter().rev() {
            graph.message(1, &node.to_message());
        }
        graph.text(2, "calmix");
        // Each is dropped when it is written: together they are as large as the network.
        for constant in self.constants {
            if needed.contains(constant.name()) {
                graph.message(5, &constant.to_message());
            }
        }
        for input in &self.inputs {
            graph.message(11, &input.to_message());
        }
        for output in &self.outputs {
            graph.message(12, &output.to_message());
        }
        graph
    }
}

impl Node {
    fn to_message(&self) -> Message {
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

impl Port {
    fn to_message(&self) -> Message {
        let mut rows = Message::default();
        rows.text(2, ROWS);
        let mut shape = Message::default();
        shape.message(1, &rows);
        for &size in &self.shape {
            let mut dimension = Message::default();
            dimension.integer(1, size.cast_signed() as i64);
            shape.message(1, &dimension);
        }
        let mut tensor = Message::default();
        tensor.integer(1, self.element as i64);
        tensor.message(2, &shape);
        let mut kind = Message::default();
        kind.message(1, &tensor);
        let mut port = Message::default();
        port.text(1, &self.name);
        port.message(2, &kind);
        port
    }
}
