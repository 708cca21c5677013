//! A model that another program exported, as part of a graph that is being built.

use calmix_io::protobuf::Message;

use crate::foreign::ForeignModel;

/// The names that the values of a model get in a graph.
#[derive(Debug, Clone, Default)]
pub(crate) struct Renaming {
    /// Stands before each name.
    pub(crate) prefix: &'static str,
    /// The input of the model, and the value of the graph that takes its place.
    pub(crate) input: Option<(String, String)>,
}

/// A model in a graph.
#[derive(Debug, Clone)]
pub(super) struct Included<'a> {
    pub(super) model: &'a ForeignModel<'a>,
    pub(super) renaming: Renaming,
}

impl Renaming {
    /// The name of a value in the graph; an optional value that is left out stays empty.
    pub(crate) fn apply(&self, name: &str) -> String {
        match &self.input {
            _ if name.is_empty() => String::new(),
            Some((input, value)) if name == input => value.clone(),
            _ => format!("{}{name}", self.prefix),
        }
    }
}

impl Included<'_> {
    /// The names of a node's inputs and outputs in the graph.
    pub(super) fn names_of(&self, node: usize) -> [Vec<String>; 2] {
        let Some(node) = self.model.nodes().get(node) else { return Default::default() };
        [&node.inputs, &node.outputs]
            .map(|names| names.iter().map(|name| self.renaming.apply(name)).collect())
    }

    /// Writes a node as a `NodeProto`.
    pub(super) fn write_node(&self, node: usize, message: &mut Message) {
        if let Some(node) = self.model.nodes().get(node) {
            node.write(message, &|name| self.renaming.apply(name), self.model.files());
        }
    }

    /// Writes the initialisers that a graph needs.
    pub(super) fn write_initialisers(&self, graph: &mut Message, is_needed: impl Fn(&str) -> bool) {
        for tensor in self.model.initialisers() {
            let name = self.renaming.apply(tensor.name());
            if is_needed(&name) {
                graph.nested(5, |message| tensor.write(message, &name, self.model.files()));
            }
        }
    }
}
