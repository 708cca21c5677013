//! L-BFGS for a smooth convex function (Nocedal and Wright, "Numerical optimization", algorithm 7.5).
//!
//! argmin is not used: it would add six crates, one of them unmaintained (paste, RUSTSEC-2024-0436), for one convex problem
//! whose iterations must be the same on every platform.

use std::collections::VecDeque;

use calmix_core::lanes;

const MEMORY: usize = 12;

/// The result of a minimisation.
#[derive(Debug, Clone)]
pub struct Minimum {
    /// The point with the lowest value.
    pub point: Vec<f64>,
    /// The number of iterations that led to it.
    pub iterations: usize,
    /// Whether the gradient vanished, or no further step lowers the function in f64.
    pub converged: bool,
}

/// The settings of a search.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// The search has converged when no component of the gradient exceeds this.
    pub tolerance: f64,
    /// The search has converged when the next step is expected to gain no more than this.
    pub min_gain: f64,
    /// The noise of the function: two values that differ by less may be in the wrong order. The slope at the end of a step
    /// between them then decides.
    pub noise: f64,
    /// The maximum number of iterations.
    pub max_iterations: usize,
    /// The approximate second derivative by each component, all positive; empty if unknown. It saves most iterations if
    /// components have different scales.
    pub curvature: &'a [f64],
}

impl Search<'_> {
    /// Searches until no component of the gradient exceeds `tolerance`, for at most `max_iterations`.
    pub fn new(tolerance: f64, max_iterations: usize) -> Self {
        Self { tolerance, min_gain: 0.0, noise: 0.0, max_iterations, curvature: &[] }
    }

    /// Minimises from `start`; `objective` returns the value and writes the gradient. The value never rises.
    ///
    /// # Errors
    /// The first error of `objective`, which ends the search.
    pub fn minimise<E>(
        &self,
        start: Vec<f64>,
        mut objective: impl FnMut(&[f64], &mut [f64]) -> Result<f64, E>,
    ) -> Result<Minimum, E> {
        let mut point = start;
        let mut gradient = vec![0.0; point.len()];
        let mut value = objective(&point, &mut gradient)?;
        let mut history = VecDeque::with_capacity(MEMORY);
        let mut trial = point.clone();
        let mut trial_gradient = gradient.clone();
        for iterations in 0..self.max_iterations {
            if gradient.iter().all(|g| g.abs() <= self.tolerance) {
                return Ok(Minimum { point, iterations, converged: true });
            }
            let mut direction = self.direction(&gradient, &history);
            if dot(&gradient, &direction) >= 0.0 {
                history.clear();
                direction = self.direction(&gradient, &history);
            }
            let slope = dot(&gradient, &direction);
            // The expected gain of a step is −slope/2. Stop when it is below the rounding of the value.
            let is_scaled = !history.is_empty() || !self.curvature.is_empty();
            if is_scaled && (-slope <= f64::EPSILON * value.abs() || -0.5 * slope <= self.min_gain) {
                return Ok(Minimum { point, iterations, converged: true });
            }
            let mut step = if is_scaled { 1.0 } else { 1.0 / dot(&direction, &direction).sqrt().max(1.0) };
            // Backtrack until the decrease is at least 1e-4 of what the slope guarantees (Armijo), and not zero:
            // next to the optimum rounding would accept steps that lead nowhere.
            let accepted = loop {
                for ((t, &x), &d) in trial.iter_mut().zip(&point).zip(&direction) {
                    *t = x + step * d;
                }
                let trial_value = objective(&trial, &mut trial_gradient)?;
                if trial_value < value && trial_value <= value + 1e-4 * step * slope {
                    break Some(trial_value);
                }
                // The approximate Wolfe condition of Hager and Zhang (2005).
                let is_level = (trial_value - value).abs() < self.noise;
                if is_level && dot(&trial_gradient, &direction).abs() <= -0.9 * slope {
                    break Some(trial_value);
                }
                step *= 0.5;
                if step < 1e-12 || -step * slope <= 1e-3 * self.min_gain {
                    break None;
                }
            };
            let Some(trial_value) = accepted else {
                if history.is_empty() {
                    // Even steepest descent gains nothing: the rest is below the rounding of the function.
                    return Ok(Minimum { point, iterations, converged: true });
                }
                history.clear();
                continue;
            };
            remember(&mut history, [&point, &trial], [&gradient, &trial_gradient]);
            std::mem::swap(&mut point, &mut trial);
            std::mem::swap(&mut gradient, &mut trial_gradient);
            value = trial_value;
        }
        Ok(Minimum { point, iterations: self.max_iterations, converged: false })
    }

    /// Computes −H·gradient by the two-loop recursion, H being the inverse Hessian that curvature and history describe.
    fn direction(&self, gradient: &[f64], history: &VecDeque<CurvaturePair>) -> Vec<f64> {
        let mut q: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut along = Vec::with_capacity(history.len());
        for pair in history.iter().rev() {
            let a = dot(&pair.step, &q) / pair.product;
            add(&mut q, -a, &pair.change);
            along.push(a);
        }
        for (q, curvature) in q.iter_mut().zip(self.curvature) {
            *q /= curvature;
        }
        if let Some(last) = history.back() {
            let scale = last.product / self.scaled_square(&last.change);
            for q in &mut q {
                *q *= scale;
            }
        }
        for (pair, a) in history.iter().zip(along.into_iter().rev()) {
            let b = dot(&pair.change, &q) / pair.product;
            add(&mut q, a - b, &pair.step);
        }
        q
    }

    /// Computes the square of a change of the gradient, each component divided by its curvature.
    fn scaled_square(&self, change: &[f64]) -> f64 {
        if self.curvature.is_empty() {
            return dot(change, change);
        }
        change.iter().zip(self.curvature).map(|(change, curvature)| change * change / curvature).sum()
    }
}

/// A step, the change of the gradient along it, and their product.
struct CurvaturePair {
    step: Vec<f64>,
    change: Vec<f64>,
    product: f64,
}

fn remember(history: &mut VecDeque<CurvaturePair>, points: [&[f64]; 2], gradients: [&[f64]; 2]) {
    let difference = |[a, b]: [&[f64]; 2]| -> Vec<f64> { b.iter().zip(a).map(|(b, a)| b - a).collect() };
    let step = difference(points);
    let change = difference(gradients);
    let product = dot(&step, &change);
    // Positive for a strictly convex function; rounding can make it useless near the end.
    if product > f64::EPSILON * dot(&change, &change) {
        if history.len() == MEMORY {
            history.pop_front();
        }
        history.push_back(CurvaturePair { step, change, product });
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    lanes::dot_f64::<16>(a, b)
}

fn add(to: &mut [f64], factor: f64, what: &[f64]) {
    for (t, w) in to.iter_mut().zip(what) {
        *t += factor * w;
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn an_ill_conditioned_quadratic_is_solved() {
        let weights: Vec<f64> = (0..20).map(|i| 10.0_f64.powi(i % 5)).collect();
        let Ok(minimum) = Search::new(1e-9, 500).minimise(vec![0.0; 20], |x, g| {
            let mut value = 0.0;
            for ((g, x), w) in g.iter_mut().zip(x).zip(&weights) {
                *g = w * (x - 1.0);
                value += 0.5 * w * (x - 1.0) * (x - 1.0);
            }
            Ok::<_, Infallible>(value)
        });
        assert!(minimum.converged && minimum.iterations < 200, "{}", minimum.iterations);
        assert!(minimum.point.iter().all(|x| (x - 1.0).abs() < 1e-8));
    }

    #[test]
    fn curvature_saves_iterations_and_a_gain_ends_them() {
        let weights: Vec<f64> = (0..40).map(|i| 10.0_f64.powi(i % 7)).collect();
        let solved = |curvature: &[f64], min_gain: f64| {
            let search = Search { tolerance: 1e-9, min_gain, noise: 0.0, max_iterations: 500, curvature };
            let found = search.minimise(vec![0.0; 40], |x, g| {
                let mut value = 0.0;
                for ((g, x), w) in g.iter_mut().zip(x).zip(&weights) {
                    *g = w * (x - 1.0) + (x - 1.0).powi(3);
                    value += 0.5 * w * (x - 1.0) * (x - 1.0) + 0.25 * (x - 1.0).powi(4);
                }
                Ok::<_, Infallible>(value)
            });
            let Ok(minimum) = found;
            minimum
        };
        let plain = solved(&[], 0.0);
        let scaled = solved(&weights, 0.0);
        assert!(scaled.converged && scaled.point.iter().all(|x| (x - 1.0).abs() < 1e-8));
        assert!(4 * scaled.iterations < plain.iterations, "{} {}", scaled.iterations, plain.iterations);
        let rough = solved(&weights, 1e-3);
        assert!(rough.converged && rough.iterations < scaled.iterations);
        let left: f64 = rough.point.iter().zip(&weights).map(|(x, w)| 0.5 * w * (x - 1.0) * (x - 1.0)).sum();
        assert!(left < 1e-2, "{left}");
    }

    #[test]
    fn error_of_the_objective_ends_the_search() {
        let mut calls = 0;
        let ended = Search::new(0.0, 500).minimise(vec![5.0], |x, g| {
            calls += 1;
            g[0] = 2.0 * x[0];
            if calls == 3 { Err("stop") } else { Ok(x[0] * x[0]) }
        });
        assert_eq!((ended.unwrap_err(), calls), ("stop", 3));
    }

    #[test]
    fn iteration_limit_is_reported() {
        let Ok(minimum) = Search::new(0.0, 1).minimise(vec![5.0, 5.0], |x, g| {
            g[0] = 4.0 * x[0].powi(3);
            g[1] = 0.02 * x[1];
            Ok::<_, Infallible>(x[0].powi(4) + 0.01 * x[1] * x[1])
        });
        assert!(!minimum.converged);
        assert_eq!(minimum.iterations, 1);
    }
}
