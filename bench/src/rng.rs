//! Draws from a stream: `beta ALPHA COUNT`.

use anyhow::{Context, Result, bail};
use calmix_core::rng::{Domain, Seed};

/// One repetition: `COUNT` draws from one stream, kept in order.
pub(crate) fn prepare(case: &[&str]) -> Result<impl FnMut() -> Vec<f64>> {
    let &["beta", alpha, count] = case else {
        bail!("the cases of rng are `beta ALPHA COUNT`, not {case:?}");
    };
    let alpha: f64 = alpha.parse().with_context(|| format!("`{alpha}` is not a number"))?;
    let count: usize = count.parse().with_context(|| format!("`{count}` is not a count"))?;
    let mut stream = Seed(11).stream(Domain::Lambda, 0, 0);
    Ok(move || (0..count).map(|_| stream.beta(alpha)).collect())
}
