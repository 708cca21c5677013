//! Stochastic gradient descent with momentum, and the exponential moving average of the weights.

use crate::network::Head;
use crate::settings::HeadSettings;

/// Keeps the divisor of a clipped gradient away from zero, as PyTorch's `clip_grad_norm_` does.
const CLIP_FLOOR: f64 = 1e-6;

/// A head in training: its weights, their average and their momentum.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Optimiser {
    pub(crate) live: Head,
    pub(crate) average: Head,
    velocity: Vec<f32>,
}

impl Optimiser {
    pub(crate) fn new(head: Head) -> Self {
        let velocity = vec![0.0; head.numbers().len()];
        Self { average: head.clone(), live: head, velocity }
    }

    /// Takes a step against the gradient, whose norm is given, and moves the average on.
    ///
    /// `g += decay·p; v = momentum·v + g; p −= rate·(g + momentum·v)`; without Nesterov, `p −= rate·v`.
    pub(crate) fn step(&mut self, settings: &HeadSettings, rate: f64, norm: f64, gradient: &[f32]) {
        let clipped = settings.clip.filter(|&limit| norm > limit);
        let factor = clipped.map_or(1.0, |limit| (limit / (norm + CLIP_FLOOR)) as f32);
        let momentum = settings.momentum as f32;
        let rate = rate as f32;
        let average_share = (1.0 - settings.ema_decay) as f32;
        let decayed = self.live.shape().decayed();
        let weights = self.live.numbers_mut().iter_mut().zip(self.average.numbers_mut());
        for (n, (((weight, average), velocity), gradient)) in
            weights.zip(&mut self.velocity).zip(gradient).enumerate()
        {
            let decay = if n < decayed { settings.weight_decay as f32 } else { 0.0 };
            let gradient = gradient * factor + decay * *weight;
            *velocity = momentum * *velocity + gradient;
            let direction = if settings.nesterov { gradient + momentum * *velocity } else { *velocity };
            *weight -= rate * direction;
            *average += average_share * (*weight - *average);
        }
    }
}

/// The Euclidean norm, in f64.
pub(crate) fn norm(gradient: &[f32]) -> f64 {
    libm::sqrt(calmix_core::lanes::sum(gradient, |number| f64::from(number) * f64::from(number)))
}
