//! Checks of a foreign graph: names are unique, nodes are in order, and no node makes a large tensor from small constants, so
//! that a file of a kilobyte cannot fill the memory.
//!
//! Sizes that a graph computes are unknown before it runs; the process that runs it has its own limits.

use std::collections::{BTreeMap, BTreeSet};

use super::ForeignModel;
use super::attribute::AttributeValue;
use super::limits::{MAX_ELEMENTS, MAX_RANK};
use super::node::ForeignNode;
use super::problem::ForeignProblem;
use super::tensor::ForeignTensor;

/// The maximum length of a constant that can decide a size: a list of paddings, one before and one after each dimension.
const MAX_CONSTANT_NUMBERS: usize = 2 * MAX_RANK;

impl ForeignModel<'_> {
    /// Removes initialisers from the inputs, and checks that names are unique and that each node comes after those whose outputs
    /// it reads.
    pub(super) fn check_order(&mut self) -> Result<(), ForeignProblem> {
        let mut defined: BTreeSet<&str> = BTreeSet::new();
        for tensor in &self.initialisers {
            add(&mut defined, tensor.name)?;
        }
        // Before IR version 4, each initialiser was also an input; later, such an input is optional with the initialiser as its
        // default.
        self.inputs.retain(|input| !defined.contains(input.name.as_str()));
        for input in &self.inputs {
            add(&mut defined, &input.name)?;
        }
        for (number, node) in self.nodes.iter().enumerate() {
            let missing = node.inputs.iter().find(|input| !input.is_empty() && !defined.contains(*input));
            if let Some(input) = missing {
                let node = node.described(number);
                return Err(ForeignProblem::Unordered { node, input: (*input).to_owned() });
            }
            for output in node.outputs.iter().filter(|output| !output.is_empty()) {
                add(&mut defined, output)?;
            }
        }
        let missing = self.outputs.iter().find(|output| !defined.contains(output.name.as_str()));
        match missing {
            Some(output) => Err(ForeignProblem::Output {
                output: output.to_string(),
                problem: "is computed by no node. Export the model again".to_owned(),
            }),
            None => Ok(()),
        }
    }
}

fn add<'n>(defined: &mut BTreeSet<&'n str>, name: &'n str) -> Result<(), ForeignProblem> {
    if defined.insert(name) {
        return Ok(());
    }
    Err(ForeignProblem::DuplicateName { name: name.to_owned() })
}

impl ForeignModel<'_> {
    /// Checks the sizes of tensors that follow from constants.
    pub(super) fn check_element_counts(&self) -> Result<(), ForeignProblem> {
        let mut constants: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        let mut sizes: BTreeMap<&str, f64> = BTreeMap::new();
        for tensor in &self.initialisers {
            sizes.insert(tensor.name, tensor.dimensions.iter().map(|&size| size as f64).product());
            constants.extend(self.numbers_of(tensor).map(|numbers| (tensor.name, numbers)));
        }
        for (number, node) in self.nodes.iter().enumerate() {
            if let (Some(constant), Some(&output)) = (self.constant_of(node), node.outputs.first()) {
                constants.insert(output, constant);
            }
            if elements(node, &constants, &sizes) > MAX_ELEMENTS as f64 {
                return Err(ForeignProblem::TooManyElements {
                    node: node.described(number),
                    max: MAX_ELEMENTS,
                });
            }
        }
        Ok(())
    }

    fn numbers_of(&self, tensor: &ForeignTensor<'_>) -> Option<Vec<f64>> {
        tensor.numbers(&self.files, MAX_CONSTANT_NUMBERS)
    }

    /// Returns the value of a node that is a small constant.
    fn constant_of(&self, node: &ForeignNode<'_>) -> Option<Vec<f64>> {
        if node.operator != "Constant" {
            return None;
        }
        let numbers = match &node.attributes.first()?.value {
            AttributeValue::Tensor(tensor) => return self.numbers_of(tensor),
            AttributeValue::Int(number) => vec![*number as f64],
            AttributeValue::Float(number) => vec![f64::from(*number)],
            AttributeValue::Ints(numbers) => numbers.iter().map(|&number| number as f64).collect(),
            AttributeValue::Floats(numbers) => numbers.iter().map(|&number| f64::from(number)).collect(),
            AttributeValue::Text(_) | AttributeValue::Texts(_) => return None,
        };
        Some(numbers).filter(|numbers| numbers.len() <= MAX_CONSTANT_NUMBERS)
    }
}

/// Returns a lower bound of the numbers that a node makes, per number that it reads or in total; zero if unknown.
fn elements(
    node: &ForeignNode<'_>,
    constants: &BTreeMap<&str, Vec<f64>>,
    sizes: &BTreeMap<&str, f64>,
) -> f64 {
    let numbers = |input: usize| constants.get(node.inputs.get(input)?).map(Vec::as_slice);
    let size_of = |input: usize| node.inputs.get(input).and_then(|name| sizes.get(name)).copied();
    // Attributes of any operator: padding, and shapes of outputs.
    let by_attribute = padded(&listed(node, "pads"))
        .max(product(&listed(node, "shape")))
        .max(product(&listed(node, "output_shape")))
        .max(product(&listed(node, "output_padding")));
    let by_input = match node.operator {
        "ConstantOfShape" | "HannWindow" | "HammingWindow" | "BlackmanWindow" => numbers(0).map(product),
        "Expand" | "Upsample" => numbers(1).map(product),
        // The input has at least one number, which is copied this many times.
        "Tile" => numbers(1).map(|repeats| product(repeats) * size_of(0).unwrap_or(1.0)),
        "OneHot" => numbers(1).map(|depth| product(depth) * size_of(0).unwrap_or(1.0)),
        "Resize" => {
            let scales = numbers(2).map(product).unwrap_or_default();
            Some(scales.max(numbers(3).map(product).unwrap_or_default()))
        }
        "Pad" => numbers(1).map(padded),
        "Range" => range(numbers(0), numbers(1), numbers(2)),
        _ => None,
    };
    by_attribute.max(by_input.unwrap_or_default())
}

/// Returns the product of sizes. A size of zero or less stands for one of the input.
fn product(sizes: &[f64]) -> f64 {
    sizes.iter().map(|size| size.max(1.0)).product()
}

/// Returns the product over the dimensions of the padding before and after.
fn padded(pads: &[f64]) -> f64 {
    let (before, after) = pads.split_at(pads.len() / 2);
    let sums: Vec<f64> =
        before.iter().zip(after).map(|(before, after)| before.max(0.0) + after.max(0.0)).collect();
    product(&sums)
}

fn range(start: Option<&[f64]>, limit: Option<&[f64]>, step: Option<&[f64]>) -> Option<f64> {
    let start = start?.first()?;
    let limit = limit?.first()?;
    let step = step?.first()?;
    Some((limit - start) / step)
}

/// Returns the integers of an attribute; none if it has another type.
fn listed(node: &ForeignNode<'_>, name: &str) -> Vec<f64> {
    match node.attribute(name) {
        Some(AttributeValue::Ints(sizes)) => sizes.iter().map(|&size| size as f64).collect(),
        _ => Vec::new(),
    }
}
