//! The parts of a graph under construction: nodes, inputs and outputs, and included models of other programs.

use calmix_io::protobuf::Message;

use crate::foreign::ForeignModel;
use crate::foreign::attribute::{FLOAT, INT, INTS};
use crate::tensor::ElementType;

/// The symbolic name of a variable number of rows.
const ROWS: &str = "N";

#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    Int(i64),
    Ints(Vec<i64>),
    Float(f32),
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) operator: &'static str,
    pub(super) inputs: Vec<String>,
    pub(super) output: String,
    pub(super) attributes: Vec<(&'static str, Attribute)>,
}

impl Node {
    pub(super) fn write(&self, node: &mut Message) {
        for input in &self.inputs {
            node.text(1, input);
        }
        node.text(2, &self.output);
        node.text(3, &self.output);
        node.text(4, self.operator);
        for (name, attribute) in &self.attributes {
            node.nested(5, |message| attribute.write(message, name));
        }
    }
}

impl Attribute {
    fn write(&self, attribute: &mut Message, name: &str) {
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
    }
}

#[derive(Debug, Clone)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) element: ElementType,
    /// The number of rows; `None` for any.
    pub(super) rows: Option<usize>,
    /// The sizes of a row, each `None` if the graph does not fix it.
    pub(super) shape: Vec<Option<usize>>,
}

impl Port {
    pub(super) fn write(&self, port: &mut Message) {
        port.text(1, &self.name);
        port.nested(2, |kind| {
            kind.nested(1, |tensor| {
                tensor.integer(1, self.element as i64);
                tensor.nested(2, |shape| {
                    shape.nested(1, |rows| write_size(rows, self.rows, Some(ROWS)));
                    for &size in &self.shape {
                        shape.nested(1, |dimension| write_size(dimension, size, None));
                    }
                });
            });
        });
    }
}

/// Writes a fixed size, or the name of a variable one.
fn write_size(dimension: &mut Message, size: Option<usize>, name: Option<&str>) {
    match (size, name) {
        (Some(size), _) => dimension.integer(1, size.cast_signed() as i64),
        (None, Some(name)) => dimension.text(2, name),
        (None, None) => {}
    }
}

/// The renaming of a model's values in a graph.
#[derive(Debug, Clone, Default)]
pub(crate) struct Renaming {
    /// The prefix of each name.
    pub(crate) prefix: &'static str,
    /// The input of the model, and the value of the graph that replaces it.
    pub(crate) input: Option<(String, String)>,
}

#[derive(Debug, Clone)]
pub(super) struct Included<'a> {
    pub(super) model: &'a ForeignModel<'a>,
    pub(super) renaming: Renaming,
}

impl Renaming {
    /// Returns the name of a value in the graph; the empty name of an omitted value stays empty.
    pub(crate) fn apply(&self, name: &str) -> String {
        match &self.input {
            _ if name.is_empty() => String::new(),
            Some((input, value)) if name == input => value.clone(),
            _ => format!("{}{name}", self.prefix),
        }
    }
}

impl Included<'_> {
    /// Returns the names of a node's inputs and outputs in the graph.
    pub(super) fn names_of(&self, node: usize) -> [Vec<String>; 2] {
        let Some(node) = self.model.nodes.get(node) else { return Default::default() };
        [&node.inputs, &node.outputs]
            .map(|names| names.iter().map(|name| self.renaming.apply(name)).collect())
    }

    /// Writes a node as a `NodeProto`.
    pub(super) fn write_node(&self, node: usize, message: &mut Message) {
        if let Some(node) = self.model.nodes.get(node) {
            node.write(message, &|name| self.renaming.apply(name), &self.model.files);
        }
    }

    pub(super) fn write_initialisers(&self, graph: &mut Message, is_needed: impl Fn(&str) -> bool) {
        for tensor in &self.model.initialisers {
            let name = self.renaming.apply(tensor.name());
            if is_needed(&name) {
                graph.nested(5, |message| tensor.write(message, &name, &self.model.files));
            }
        }
    }
}
