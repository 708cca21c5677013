//! What a step has to do, cut as its batch is: the plan of a group, as far as this process runs it.

use calmix_core::mixup::{Mix, Row};
use calmix_core::plan::StepPlan;
use calmix_core::pseudo::PseudoLabels;

use crate::batch::Part;
use crate::error::EngineError;

/// What the parts of a batch have to do.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tasks {
    /// One for each part, in their order.
    pub parts: Vec<Task>,
    /// Pixels of weak views that are mixed here and belong to a part elsewhere.
    pub borrowed: Vec<u8>,
    /// Whether anything is mixed in this step, here or elsewhere.
    pub mixing: bool,
}

/// What one part has to do.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Task {
    /// Label and weight of each of its unlabelled rows.
    pub pseudo: PseudoLabels,
    /// What it mixes.
    pub mixes: Vec<Mixture>,
    /// ỹ of each mixture: C numbers each.
    pub targets: Vec<f32>,
}

/// `λ·a + (1 − λ)·b` of two images that are at hand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mixture {
    /// The first.
    pub a: Image,
    /// The second.
    pub b: Image,
    /// λ.
    pub lambda: f32,
    /// What its loss is multiplied with before the sum.
    pub weight: f32,
}

/// An image that is at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Image {
    /// A labelled row of the batch.
    Labelled(usize),
    /// The weak view of an unlabelled row of the batch.
    Weak(usize),
    /// One of [`Tasks::borrowed`].
    Borrowed(usize),
}

impl From<StepPlan> for Tasks {
    /// The plan of a group that is run here as one part.
    fn from(plan: StepPlan) -> Self {
        let at_hand = |row| match row {
            Row::Labelled(i) => Image::Labelled(i),
            Row::Unlabelled(j) => Image::Weak(j),
        };
        let mixes = plan.mixes.iter().map(|mix| Mixture::of(mix, at_hand)).collect();
        let mixing = !plan.mixes.is_empty();
        let task = Task { pseudo: plan.pseudo, mixes, targets: plan.targets };
        Self { parts: vec![task], borrowed: Vec::new(), mixing }
    }
}

impl Mixture {
    /// A mixture of a plan, with its rows found by `at_hand`.
    pub fn of(mix: &Mix, mut at_hand: impl FnMut(Row) -> Image) -> Self {
        Self { a: at_hand(mix.a), b: at_hand(mix.b), lambda: mix.lambda, weight: mix.weight }
    }
}

impl Tasks {
    /// Checks that every task fits its part, and that all it names is there.
    pub(crate) fn check(&self, parts: &[Part], classes: usize, image: usize) -> Result<(), EngineError> {
        let misfit = |sentence: String| Err(EngineError::Misfit(sentence));
        if self.parts.len() != parts.len() {
            return misfit(format!("{} tasks for {} parts", self.parts.len(), parts.len()));
        }
        let rows = |of: fn(&Part) -> usize| parts.iter().map(of).max().unwrap_or(0);
        let (x, u) = (rows(|part| part.labelled.end), rows(|part| part.unlabelled.end));
        let borrowed = self.borrowed.len() / image.max(1);
        let exists = |image| match image {
            Image::Labelled(i) => i < x,
            Image::Weak(j) => j < u,
            Image::Borrowed(n) => n < borrowed,
        };
        for (Task { pseudo, mixes, targets }, part) in self.parts.iter().zip(parts) {
            let PseudoLabels { labels, weights } = pseudo;
            let u = part.unlabelled.len();
            if labels.len() != u || weights.len() != u {
                return misfit(format!("{} labels and {} weights for {u} rows", labels.len(), weights.len()));
            }
            if let Some(label) = labels.iter().find(|&&label| label as usize >= classes) {
                return misfit(format!("label {label} of {classes} classes"));
            }
            if let Some(mix) = mixes.iter().find(|mix| !exists(mix.a) || !exists(mix.b)) {
                return misfit(format!("a mixture of {:?} and {:?}", mix.a, mix.b));
            }
            if targets.len() != mixes.len() * classes {
                return misfit(format!("{} targets for {} mixtures", targets.len(), mixes.len()));
            }
            if !mixes.is_empty() && !self.mixing {
                return misfit("mixtures in a step that mixes nothing".to_owned());
            }
        }
        Ok(())
    }
}
