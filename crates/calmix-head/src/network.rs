//! A head: vectors in, logits out, and the gradient of a loss with respect to its weights.

use std::ops::Range;

use calmix_core::lanes::dot;
use calmix_core::rng::{Domain, Seed};

use crate::error::HeadError;
use crate::product::{Operand, multiply};

/// The number of outputs up to which packing the factors of a product takes longer than multiplying them.
const MAX_UNPACKED_OUTPUTS: usize = 32;

/// The sizes of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadShape {
    /// The length of a vector.
    pub width: usize,
    /// The units of the hidden layer; `None` for a linear head.
    pub hidden: Option<usize>,
    /// The number of classes.
    pub classes: usize,
}

/// A parameter of a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The name in files: `hidden.weight`, `hidden.bias`, `classifier.weight`, `classifier.bias`.
    pub name: &'static str,
    /// (out, in) or (out).
    pub shape: Vec<usize>,
    /// The range of its numbers in [`Head::numbers`].
    pub range: Range<usize>,
}

/// The weights of a head.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    shape: HeadShape,
    /// The weights: matrices, which are decayed, then biases.
    numbers: Vec<f32>,
}

/// The outputs of a head for some rows.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadOutput {
    /// C numbers per row.
    pub logits: Vec<f32>,
    /// The outputs of the hidden layer; `None` for a linear head, which classifies its inputs.
    pub hidden: Option<Vec<f32>>,
}

/// The range of each parameter; those of the hidden layer are empty in a linear head.
struct Ranges {
    hidden_weight: Range<usize>,
    classifier_weight: Range<usize>,
    hidden_bias: Range<usize>,
    classifier_bias: Range<usize>,
}

impl HeadShape {
    /// Returns the length of the vectors that the classifier reads.
    pub fn features(&self) -> usize {
        self.hidden.unwrap_or(self.width)
    }

    /// Returns the number of weights and biases.
    pub fn numbers(&self) -> usize {
        self.ranges().classifier_bias.end
    }

    /// Returns the number of weights that are decayed, those of matrices.
    pub(crate) fn decayed(&self) -> usize {
        self.ranges().classifier_weight.end
    }

    fn ranges(&self) -> Ranges {
        let units = self.hidden.unwrap_or(0);
        let mut end = 0;
        let mut next = |length: usize| {
            end += length;
            end - length..end
        };
        Ranges {
            hidden_weight: next(units * self.width),
            classifier_weight: next(self.classes * self.features()),
            hidden_bias: next(units),
            classifier_bias: next(self.classes),
        }
    }

    /// Returns the parameters, in the order in which a network names them.
    pub fn parameters(&self) -> Vec<Parameter> {
        let ranges = self.ranges();
        let mut parameters = Vec::new();
        if let Some(units) = self.hidden {
            let shape = vec![units, self.width];
            parameters.push(Parameter { name: "hidden.weight", shape, range: ranges.hidden_weight });
            parameters.push(Parameter { name: "hidden.bias", shape: vec![units], range: ranges.hidden_bias });
        }
        let shape = vec![self.classes, self.features()];
        parameters.push(Parameter { name: "classifier.weight", shape, range: ranges.classifier_weight });
        let shape = vec![self.classes];
        parameters.push(Parameter { name: "classifier.bias", shape, range: ranges.classifier_bias });
        parameters
    }
}

impl Head {
    /// Initialises a head: matrices are Xavier normal (Glorot and Bengio 2010), biases zero.
    pub fn initial(shape: HeadShape, seed: Seed) -> Self {
        let mut numbers = vec![0.0; shape.numbers()];
        for (n, parameter) in shape.parameters().into_iter().enumerate() {
            if let [to, from] = parameter.shape[..] {
                let deviation = libm::sqrt(2.0 / (from + to) as f64);
                let mut stream = seed.stream(Domain::Init, 0, n as u64);
                numbers[parameter.range].fill_with(|| (deviation * stream.normal()) as f32);
            }
        }
        Self { shape, numbers }
    }

    /// Creates a head from its numbers: matrices, then biases.
    ///
    /// # Errors
    /// If their number does not match the shape.
    pub fn new(shape: HeadShape, numbers: Vec<f32>) -> Result<Self, HeadError> {
        let needed = shape.numbers();
        if numbers.len() != needed {
            let got = numbers.len();
            return Err(HeadError::Input(format!("a head of {needed} numbers, but there are {got}")));
        }
        Ok(Self { shape, numbers })
    }

    /// Returns the sizes of the head.
    pub fn shape(&self) -> HeadShape {
        self.shape
    }

    /// Returns the weights of all matrices, then the biases.
    pub fn numbers(&self) -> &[f32] {
        &self.numbers
    }

    pub(crate) fn numbers_mut(&mut self) -> &mut [f32] {
        &mut self.numbers
    }

    /// Computes the outputs for vectors that follow each other. The outputs of a vector do not depend on the others.
    ///
    /// # Errors
    /// If the numbers do not divide into vectors.
    pub fn forward(&self, vectors: &[f32]) -> Result<HeadOutput, HeadError> {
        let HeadShape { width, hidden, .. } = self.shape;
        if width == 0 || !vectors.len().is_multiple_of(width) {
            return Err(HeadError::Input(format!("{} numbers are not vectors of {width}", vectors.len())));
        }
        let ranges = self.shape.ranges();
        let hidden = hidden.map(|_| {
            let weight = &self.numbers[ranges.hidden_weight];
            let mut outputs = affine(vectors, weight, &self.numbers[ranges.hidden_bias]);
            for number in &mut outputs {
                *number = number.max(0.0);
            }
            outputs
        });
        let features = hidden.as_deref().unwrap_or(vectors);
        let weight = &self.numbers[ranges.classifier_weight];
        let logits = affine(features, weight, &self.numbers[ranges.classifier_bias]);
        Ok(HeadOutput { logits, hidden })
    }

    /// Computes the gradient with respect to all weights from the gradient with respect to the logits of these vectors.
    pub(crate) fn backward(&self, vectors: &[f32], output: &HeadOutput, by_logits: &[f32]) -> Vec<f32> {
        let HeadShape { hidden, classes, .. } = self.shape;
        let rows = by_logits.len() / classes.max(1);
        let ranges = self.shape.ranges();
        let mut gradient = vec![0.0; self.numbers.len()];
        let features = output.hidden.as_deref().unwrap_or(vectors);
        by_weight(by_logits, features, classes, &mut gradient[ranges.classifier_weight.clone()]);
        sum_rows(by_logits, &mut gradient[ranges.classifier_bias]);
        if let (Some(units), Some(outputs)) = (hidden, &output.hidden) {
            let mut by_hidden = vec![0.0; rows * units];
            let weight = Operand::new(&self.numbers[ranges.classifier_weight], classes, units);
            multiply(Operand::new(by_logits, rows, classes), weight, 0.0, &mut by_hidden);
            for (by, &output) in by_hidden.iter_mut().zip(outputs) {
                if output <= 0.0 {
                    *by = 0.0;
                }
            }
            by_weight(&by_hidden, vectors, units, &mut gradient[ranges.hidden_weight]);
            sum_rows(&by_hidden, &mut gradient[ranges.hidden_bias]);
        }
        gradient
    }
}

/// Computes `vectors·weightᵀ + bias`.
pub(crate) fn affine(vectors: &[f32], weight: &[f32], bias: &[f32]) -> Vec<f32> {
    let to = bias.len();
    let width = weight.len() / to.max(1);
    let rows = vectors.len() / width.max(1);
    let mut outputs = Vec::with_capacity(rows * to);
    if to <= MAX_UNPACKED_OUTPUTS {
        for vector in vectors.chunks_exact(width) {
            let each = weight.chunks_exact(width).zip(bias);
            outputs.extend(each.map(|(weight, bias)| dot(vector, weight) + bias));
        }
        return outputs;
    }
    (0..rows).for_each(|_| outputs.extend_from_slice(bias));
    let weight = Operand::new(weight, to, width).transposed();
    multiply(Operand::new(vectors, rows, width), weight, 1.0, &mut outputs);
    outputs
}

/// Computes `byᵀ·vectors`, the gradient with respect to a weight matrix, from the gradient with respect to its outputs.
pub(crate) fn by_weight(by_outputs: &[f32], vectors: &[f32], to: usize, into: &mut [f32]) {
    let width = into.len() / to.max(1);
    if to > MAX_UNPACKED_OUTPUTS {
        let rows = by_outputs.len() / to;
        let by_outputs = Operand::new(by_outputs, rows, to).transposed();
        multiply(by_outputs, Operand::new(vectors, rows, width), 0.0, into);
        return;
    }
    into.fill(0.0);
    for (by_row, vector) in by_outputs.chunks_exact(to).zip(vectors.chunks_exact(width)) {
        for (&by, into) in by_row.iter().zip(into.chunks_exact_mut(width)) {
            if by != 0.0 {
                into.iter_mut().zip(vector).for_each(|(into, &number)| *into += by * number);
            }
        }
    }
}

/// Adds up the rows of a matrix, in f64.
fn sum_rows(matrix: &[f32], into: &mut [f32]) {
    let mut sums = vec![0.0_f64; into.len()];
    for row in matrix.chunks_exact(into.len().max(1)) {
        sums.iter_mut().zip(row).for_each(|(sum, &number)| *sum += f64::from(number));
    }
    into.iter_mut().zip(sums).for_each(|(into, sum)| *into = sum as f32);
}
