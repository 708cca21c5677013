//! A graph of nodes that is serialised as an ONNX file. Its number of rows is arbitrary, unless an included model fixes it.

mod parts;

use std::collections::BTreeSet;

use calmix_io::protobuf::Message;

pub use self::parts::Attribute;
pub(crate) use self::parts::Renaming;
use self::parts::{Included, Node, Port};
use crate::foreign::ForeignModel;
use crate::tensor::{ElementType, Tensor};

/// The version of the operators. No graph needs a later one, and most runtimes support this one.
const OPSET: i64 = 17;
/// The version of the file format that goes with it.
const IR_VERSION: i64 = 8;
/// The first version of the operators in which reductions have their axes as an input.
const AXES_AS_INPUT: i64 = 18;

/// The name of a value of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value(String);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphForm {
    /// The version of the operators, at least 13.
    pub opset: i64,
    pub ir_version: i64,
    /// The number of rows of every input and output; `None` for any.
    pub rows: Option<usize>,
    /// The prefix of the names of values, but not of inputs and outputs.
    pub prefix: &'static str,
}

#[derive(Debug, Clone)]
enum Step {
    Node(Node),
    /// The indices of an included model and of its node.
    Included(usize, usize),
}

#[derive(Debug, Default)]
pub struct Graph<'a> {
    form: GraphForm,
    steps: Vec<Step>,
    constants: Vec<Tensor>,
    included: Vec<Included<'a>>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
}

/// Opset 17, any number of rows, no prefix.
impl Default for GraphForm {
    fn default() -> Self {
        Self { opset: OPSET, ir_version: IR_VERSION, rows: None, prefix: "" }
    }
}

impl Value {
    /// Returns the value of this name that an included model computes.
    pub(crate) fn of_included(name: String) -> Self {
        Self(name)
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }
}

impl<'a> Graph<'a> {
    pub fn new(form: GraphForm) -> Self {
        Self { form, ..Self::default() }
    }

    /// Adds an input of rows of this shape.
    pub fn input(&mut self, name: &str, element: ElementType, shape: &[usize]) -> Value {
        let shape = shape.iter().copied().map(Some).collect();
        self.inputs.push(Port { name: name.to_owned(), element, rows: self.form.rows, shape });
        Value(name.to_owned())
    }

    /// Makes a value an output, with rows of this shape.
    pub fn output(&mut self, name: &str, value: &Value, element: ElementType, shape: &[usize]) {
        self.add_output(name, value, element, shape.iter().copied().map(Some).collect());
    }

    /// Makes vectors an output; their width is `None` if it is known only when the graph runs.
    pub fn output_vectors(&mut self, name: &str, value: &Value, element: ElementType, width: Option<usize>) {
        self.add_output(name, value, element, vec![width]);
    }

    fn add_output(&mut self, name: &str, value: &Value, element: ElementType, shape: Vec<Option<usize>>) {
        self.steps.push(Step::Node(Node {
            operator: "Identity",
            inputs: vec![value.0.clone()],
            output: name.to_owned(),
            attributes: Vec::new(),
        }));
        self.outputs.push(Port { name: name.to_owned(), element, rows: self.form.rows, shape });
    }

    /// Adds a constant, unless there is one with this name.
    pub fn constant(&mut self, tensor: Tensor) -> Value {
        let tensor = tensor.with_prefix(self.form.prefix);
        let value = Value(tensor.name().to_owned());
        if !self.constants.iter().any(|constant| constant.name() == tensor.name()) {
            self.constants.push(tensor);
        }
        value
    }

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
        let output = format!("{}{operator}_{}", self.form.prefix, self.steps.len());
        let inputs = inputs.iter().map(|value| value.0.clone()).collect();
        self.steps.push(Step::Node(Node { operator, inputs, output: output.clone(), attributes }));
        Value(output)
    }

    /// Adds a cast to a type of numbers.
    pub fn cast(&mut self, value: &Value, to: ElementType) -> Value {
        self.node_with("Cast", &[value], vec![("to", Attribute::Int(to as i64))])
    }

    /// Adds a reduction over axes in the form of the graph's opset: `ReduceMax`, `ReduceMean` or `ReduceL2`. `ReduceSum` has had
    /// its axes as an input for longer than the others.
    pub fn reduce(&mut self, operator: &'static str, x: &Value, axes: &[i64], keeps_axes: bool) -> Value {
        let keepdims = ("keepdims", Attribute::Int(i64::from(keeps_axes)));
        if self.form.opset < AXES_AS_INPUT {
            let axes = ("axes", Attribute::Ints(axes.to_vec()));
            return self.node_with(operator, &[x], vec![axes, keepdims]);
        }
        let numbers: Vec<String> = axes.iter().map(ToString::to_string).collect();
        let name = format!("axes.{}", numbers.join("."));
        let axes = self.constant(Tensor::i64(name, &[axes.len()], axes));
        self.node_with(operator, &[x, &axes], vec![keepdims])
    }

    /// Adds all nodes and initialisers of a model, renamed.
    pub(crate) fn include(&mut self, model: &'a ForeignModel<'a>, renaming: Renaming) {
        let number = self.included.len();
        self.steps.extend((0..model.nodes.len()).map(|node| Step::Included(number, node)));
        self.included.push(Included { model, renaming });
    }

    /// Serialises the graph. Nodes and constants that no output depends on are left out.
    pub fn into_bytes(self, metadata: &[(String, String)]) -> Vec<u8> {
        let mut model = Message::default();
        // Reserve the memory once: a growing vector is copied, and would take twice as much.
        let of_included: usize = self.included.iter().map(|included| included.model.file_bytes()).sum();
        let of_constants: usize = self.constants.iter().map(Tensor::file_bytes).sum();
        model.reserve(of_included + of_constants);
        model.integer(1, self.form.ir_version);
        model.text(2, "calmix");
        model.text(3, env!("CARGO_PKG_VERSION"));
        let opset = self.form.opset;
        model.nested(7, |graph| self.write(graph));
        model.nested(8, |operators| {
            operators.text(1, "");
            operators.integer(2, opset);
        });
        for (key, value) in metadata {
            model.nested(14, |entry| {
                entry.text(1, key);
                entry.text(2, value);
            });
        }
        model.into_bytes()
    }

    /// Writes a `GraphProto`.
    fn write(self, graph: &mut Message) {
        let mut needed: BTreeSet<String> = self.outputs.iter().map(|port| port.name.clone()).collect();
        let mut steps = Vec::new();
        // Nodes come after those they depend on, so one backward pass finds all that are needed.
        for step in self.steps.iter().rev() {
            let [inputs, outputs] = self.names_of(step);
            if outputs.iter().any(|output| needed.contains(output)) {
                needed.extend(inputs);
                steps.push(step);
            }
        }
        for step in steps.into_iter().rev() {
            match step {
                Step::Node(node) => graph.nested(1, |message| node.write(message)),
                Step::Included(number, node) => {
                    graph.nested(1, |message| self.included[*number].write_node(*node, message));
                }
            }
        }
        graph.text(2, "calmix");
        // Drop each constant when it is written: together they are as large as the network.
        for constant in self.constants {
            if needed.contains(constant.name()) {
                graph.message(5, &constant.to_message());
            }
        }
        for included in &self.included {
            included.write_initialisers(graph, |name| needed.contains(name));
        }
        for input in &self.inputs {
            graph.nested(11, |message| input.write(message));
        }
        for output in &self.outputs {
            graph.nested(12, |message| output.write(message));
        }
    }

    /// Returns the names of a step's inputs and outputs.
    fn names_of(&self, step: &Step) -> [Vec<String>; 2] {
        match step {
            Step::Node(node) => [node.inputs.clone(), vec![node.output.clone()]],
            Step::Included(number, node) => self.included[*number].names_of(*node),
        }
    }
}
