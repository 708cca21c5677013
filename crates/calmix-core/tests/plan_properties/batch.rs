//! A batch of any size and any values.

use calmix_core::matrix::Matrix;
use calmix_core::observation::{Observation, Rows};
use calmix_core::rng::{Domain, Seed, Stream};

/// Samples of the dataset that batches are drawn from.
pub(crate) const SAMPLES: usize = 40;

/// What the numbers of a batch look like.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Values {
    Ordinary,
    AllEqual,
    Extreme,
}

#[derive(Debug, Clone)]
pub(crate) struct Batch {
    pub(crate) classes: usize,
    pub(crate) width: usize,
    pub(crate) x_ids: Vec<u64>,
    pub(crate) y: Vec<u32>,
    pub(crate) u_ids: Vec<u64>,
    pub(crate) zx: Vec<f32>,
    pub(crate) zu: Vec<f32>,
    pub(crate) fx: Vec<f32>,
    pub(crate) fu: Vec<f32>,
}

impl Batch {
    /// Distinct ids within each of the two batches when `distinct`, any ids otherwise.
    pub(crate) fn draw(
        case: u64,
        [labelled, unlabelled, classes, width]: [usize; 4],
        values: Values,
        distinct: bool,
    ) -> Self {
        let s = &mut Seed(99).stream(Domain::Init, 0, case);
        let ids = |s: &mut Stream, n| -> Vec<u64> {
            if distinct {
                s.draw_without_replacement(SAMPLES as u64, n)
            } else {
                (0..n).map(|_| s.below(SAMPLES as u64)).collect()
            }
        };
        let numbers = |s: &mut Stream, n: usize| -> Vec<f32> {
            let extremes = [f32::MAX, f32::MIN, 0.0, -0.0, 1e-45, -1e-45, 1.0];
            (0..n)
                .map(|_| match values {
                    Values::Ordinary => s.normal() as f32 * 3.0,
                    Values::AllEqual => 0.25,
                    Values::Extreme => extremes[s.index(extremes.len())],
                })
                .collect()
        };
        let (x_ids, u_ids) = (ids(s, labelled), ids(s, unlabelled));
        Self {
            classes,
            width,
            y: x_ids.iter().map(|_| s.below(classes as u64) as u32).collect(),
            zx: numbers(s, x_ids.len() * classes),
            zu: numbers(s, u_ids.len() * classes),
            fx: numbers(s, x_ids.len() * width),
            fu: numbers(s, u_ids.len() * width),
            x_ids,
            u_ids,
        }
    }

    fn rows<'a>(&self, ids: &'a [u64], logits: &'a [f32], features: &'a [f32]) -> Rows<'a> {
        Rows {
            ids,
            logits: Matrix::new(logits, ids.len(), self.classes).unwrap(),
            features: Matrix::new(features, ids.len(), self.width).unwrap(),
        }
    }

    pub(crate) fn observation(&self) -> Observation<'_> {
        Observation {
            labelled: self.rows(&self.x_ids, &self.zx, &self.fx),
            labels: &self.y,
            unlabelled: self.rows(&self.u_ids, &self.zu, &self.fu),
        }
    }

    /// The same batch with its rows in another order.
    pub(crate) fn reordered(&self, x_order: &[usize], u_order: &[usize]) -> Self {
        fn rows<T: Copy>(of: &[T], width: usize, order: &[usize]) -> Vec<T> {
            order.iter().flat_map(|&i| of[i * width..(i + 1) * width].iter().copied()).collect()
        }
        Self {
            classes: self.classes,
            width: self.width,
            x_ids: rows(&self.x_ids, 1, x_order),
            y: rows(&self.y, 1, x_order),
            u_ids: rows(&self.u_ids, 1, u_order),
            zx: rows(&self.zx, self.classes, x_order),
            zu: rows(&self.zu, self.classes, u_order),
            fx: rows(&self.fx, self.width, x_order),
            fu: rows(&self.fu, self.width, u_order),
        }
    }
}
