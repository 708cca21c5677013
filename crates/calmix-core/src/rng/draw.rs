//! Distributions that can be drawn from a stream.
//!
//! rand and rand_distr are not used: they may change their values between versions, and here the values are a stable format.

use super::Stream;

impl Stream {
    /// Draws uniformly from `[0, 1)`, with 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Draws uniformly from `(0, 1]`, so that the logarithm is finite.
    fn uniform_positive(&mut self) -> f64 {
        1.0 - self.uniform()
    }

    /// Draws uniformly from `0, 1, …, bound − 1`, without bias; zero if `bound` is zero.
    ///
    /// Lemire, "Fast random integer generation in an interval", 2019.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        let rejected = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= rejected {
                return (product >> 64) as u64;
            }
        }
    }

    /// Draws an index into a list of length `len`, without bias; zero if `len` is zero.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Draws from the standard normal distribution (Box and Muller, 1958; one of the pair).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.uniform_positive()));
        radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }

    /// Draws from Beta(α, α). As in mixup's reference code, α = 0 means no mixing: the draw is 1.
    ///
    /// λ = G₁/(G₁ + G₂) for two Gamma(α) variables, compared by their logarithms: for a small α both
    /// underflow long before their ratio loses its meaning.
    pub fn beta(&mut self, alpha: f64) -> f64 {
        if !(alpha > 0.0 && alpha.is_finite()) {
            return 1.0;
        }
        let (first, second) = (self.ln_gamma_variate(alpha), self.ln_gamma_variate(alpha));
        1.0 / (1.0 + libm::exp(second - first))
    }

    /// Draws the logarithm of a Gamma(α) variate, as ln G(α + 1) + ln(U)/α.
    ///
    /// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000, with the boost of their
    /// section 6 at every α, so that there is one path.
    fn ln_gamma_variate(&mut self, alpha: f64) -> f64 {
        let d = alpha + 2.0 / 3.0;
        let c = 1.0 / libm::sqrt(9.0 * d);
        loop {
            let x = self.normal();
            let t = 1.0 + c * x;
            if t <= 0.0 {
                continue;
            }
            let (v, ln_v) = (t * t * t, 3.0 * libm::log(t));
            if libm::log(self.uniform_positive()) < 0.5 * x * x + d - d * v + d * ln_v {
                return libm::log(d) + ln_v + libm::log(self.uniform_positive()) / alpha;
            }
        }
    }

    /// Shuffles in place, every order equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }

    /// Draws `count` distinct indices below `len` in random order, all of them if `count` is larger.
    ///
    /// Costs O(count) memory whatever `len` is (Floyd's algorithm, then a shuffle).
    pub fn draw_without_replacement(&mut self, len: u64, count: usize) -> Vec<u64> {
        let count = (count as u64).min(len);
        let mut used = std::collections::BTreeSet::new();
        let mut drawn = Vec::with_capacity(count as usize);
        for last in len - count..len {
            let candidate = self.below(last + 1);
            let chosen = if used.contains(&candidate) { last } else { candidate };
            used.insert(chosen);
            drawn.push(chosen);
        }
        self.shuffle(&mut drawn);
        drawn
    }
}

#[cfg(test)]
mod tests {
    use crate::rng::{Domain, Seed, Stream};

    fn stream(sample: u64) -> Stream {
        Seed(11).stream(Domain::Bootstrap, 0, sample)
    }

    /// Kolmogorov–Smirnov distance of `draws` to the distribution function `cdf`, times √n.
    fn ks(mut draws: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
        draws.sort_by(f64::total_cmp);
        let n = draws.len() as f64;
        let gap = |(i, x): (usize, &f64)| {
            let f = cdf(*x);
            (f - i as f64 / n).abs().max(((i + 1) as f64 / n - f).abs())
        };
        draws.iter().enumerate().map(gap).fold(0.0, f64::max) * n.sqrt()
    }

    // P(√n·D > 1.95) ≈ 0.001; the streams are fixed, so the test cannot flicker.
    const KS_LIMIT: f64 = 1.95;

    #[test]
    fn uniform_and_normal_follow_their_distributions() {
        let mut s = stream(1);
        assert!(ks((0..50_000).map(|_| s.uniform()).collect(), |x| x) < KS_LIMIT);
        let normal = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
        assert!(ks((0..50_000).map(|_| s.normal()).collect(), normal) < KS_LIMIT);
    }

    #[test]
    fn beta_follows_its_distribution() {
        let mut s = stream(2);
        // Closed forms: Beta(½, ½) is the arcsine law, Beta(1, 1) uniform, Beta(2, 2) has x²(3 − 2x).
        let arcsine = |x: f64| 2.0 / std::f64::consts::PI * libm::asin(libm::sqrt(x));
        assert!(ks((0..20_000).map(|_| s.beta(0.5)).collect(), arcsine) < KS_LIMIT);
        assert!(ks((0..20_000).map(|_| s.beta(1.0)).collect(), |x| x) < KS_LIMIT);
        assert!(ks((0..20_000).map(|_| s.beta(2.0)).collect(), |x| x * x * (3.0 - 2.0 * x)) < KS_LIMIT);
    }

    #[test]
    fn beta_has_the_right_variance_at_the_papers_alpha() {
        let mut s = stream(3);
        let draws: Vec<f64> = (0..100_000).map(|_| s.beta(0.4)).collect();
        let mean = draws.iter().sum::<f64>() / 1e5;
        let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 1e5;
        // 1 / (4·(2α + 1)); the standard error of the variance is about 0.0003 here.
        assert!((mean - 0.5).abs() < 0.004, "{mean}");
        assert!((variance - 1.0 / 7.2).abs() < 0.0012, "{variance}");
    }

    #[test]
    fn beta_stays_in_the_unit_interval_at_any_alpha() {
        let mut s = stream(4);
        for alpha in [1e-300, 1e-6, 0.01, 1.0, 1e3, 1e12, 1e300] {
            for _ in 0..200 {
                let x = s.beta(alpha);
                assert!((0.0..=1.0).contains(&x), "Beta({alpha}) gave {x}");
            }
        }
        assert_eq!(s.beta(0.0), 1.0);
        assert_eq!(s.beta(f64::NAN), 1.0);
    }

    #[test]
    fn bounded_integers_are_uniform() {
        let mut s = stream(5);
        let mut counts = [0_u32; 7];
        for _ in 0..70_000 {
            counts[s.index(7)] += 1;
        }
        let chi2: f64 = counts.iter().map(|&c| (f64::from(c) - 1e4).powi(2) / 1e4).sum();
        assert!(chi2 < 22.5, "chi-square of {chi2} on 6 degrees of freedom"); // p = 0.001
        assert_eq!((s.below(0), s.below(1), s.index(0)), (0, 0, 0));
        // Of 2⁶⁴ draws, every third value below 3·2⁶² would come up twice and the others once.
        let threes = (0..9_000).filter(|_| s.below(3 << 62).is_multiple_of(3)).count();
        assert!((2_850..3_150).contains(&threes), "{threes} of 9000");
    }

    #[test]
    fn shuffles_reach_every_order_equally() {
        let mut counts = std::collections::BTreeMap::new();
        for sample in 0..24_000 {
            let mut items = [0, 1, 2, 3];
            stream(sample).shuffle(&mut items);
            *counts.entry(items).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        let chi2: f64 = counts.values().map(|&c| (f64::from(c) - 1e3).powi(2) / 1e3).sum();
        assert!(chi2 < 49.7, "chi-square of {chi2} on 23 degrees of freedom"); // p = 0.001
    }

    #[test]
    fn draws_without_replacement_are_distinct_and_uniform() {
        let mut counts = [0_u32; 10];
        for sample in 0..20_000 {
            let drawn = stream(sample).draw_without_replacement(10, 3);
            assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2] && drawn[0] != drawn[2]);
            counts[drawn[0] as usize] += 1;
        }
        let chi2: f64 = counts.iter().map(|&c| (f64::from(c) - 2e3).powi(2) / 2e3).sum();
        assert!(chi2 < 27.9, "chi-square of {chi2} on 9 degrees of freedom"); // p = 0.001
        let mut all = stream(0).draw_without_replacement(5, 99);
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4]);
        assert_eq!(stream(0).draw_without_replacement(0, 3), Vec::<u64>::new());
        assert_eq!(stream(0).draw_without_replacement(u64::MAX, 4).len(), 4);
    }
}
