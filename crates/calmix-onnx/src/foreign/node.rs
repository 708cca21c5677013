//! Nodes of a foreign model: standard operators without subgraphs.

use calmix_io::protobuf::{Field, Fields, Message};
use calmix_io::shown::shown;

use super::attribute::{AttributeValue, ForeignAttribute};
use super::limits::MAX_EDGES;
use super::problem::{ForeignProblem, check_max, name_of};
use super::tensor::Storage;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ForeignNode<'a> {
    name: &'a str,
    pub(super) operator: &'a str,
    /// The names of its inputs; that of an omitted optional input is empty.
    pub(crate) inputs: Vec<&'a str>,
    pub(crate) outputs: Vec<&'a str>,
    pub(super) attributes: Vec<ForeignAttribute<'a>>,
}

impl<'a> ForeignNode<'a> {
    /// Reads a `NodeProto`, the node with this number. `edges` counts the inputs, outputs and attributes of all nodes.
    pub(super) fn read(
        fields: Fields<'a>,
        number: usize,
        edges: &mut usize,
        storage: &mut Storage<'_>,
    ) -> Result<Self, ForeignProblem> {
        let mut node =
            Self { name: "", operator: "", inputs: Vec::new(), outputs: Vec::new(), attributes: Vec::new() };
        let mut attributes: Vec<Field<'a>> = Vec::new();
        let mut domain = "";
        let mut overload = "";
        for field in fields {
            let field = field?;
            match field.number {
                1 => node.inputs.push(name_of(&field)?),
                2 => node.outputs.push(name_of(&field)?),
                3 => node.name = name_of(&field)?,
                4 => node.operator = name_of(&field)?,
                5 => attributes.push(field),
                7 => domain = name_of(&field)?,
                8 => overload = name_of(&field)?,
                _ => {}
            }
            if matches!(field.number, 1 | 2 | 5) {
                *edges += 1;
                check_max(*edges, MAX_EDGES, "edge")?;
            }
        }
        let described = node.described(number);
        if !matches!(domain, "" | "ai.onnx") || !overload.is_empty() {
            let domain = if overload.is_empty() { domain } else { overload };
            return Err(ForeignProblem::Domain { node: described, domain: domain.to_owned() });
        }
        for attribute in attributes {
            node.attributes.push(ForeignAttribute::read(attribute.message()?, &described, storage)?);
        }
        Ok(node)
    }

    /// Formats the node for a message, escaped.
    pub(super) fn described(&self, number: usize) -> String {
        let operator = shown(self.operator);
        if self.name.is_empty() {
            format!("the node {number} ({operator})")
        } else {
            format!("the node `{}` ({operator})", shown(self.name))
        }
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&AttributeValue<'a>> {
        self.attributes.iter().find(|attribute| attribute.name == name).map(|attribute| &attribute.value)
    }

    /// Writes it as a `NodeProto`, with renamed values.
    pub(crate) fn write(&self, node: &mut Message, rename: &dyn Fn(&str) -> String, files: &[Vec<u8>]) {
        for input in &self.inputs {
            node.text(1, &rename(input));
        }
        for output in &self.outputs {
            node.text(2, &rename(output));
        }
        if !self.name.is_empty() {
            node.text(3, &rename(self.name));
        }
        node.text(4, self.operator);
        for attribute in &self.attributes {
            node.nested(5, |message| attribute.write(message, files));
        }
    }
}
