//! Positions in the order of a stream: `at|cursor SAMPLES COUNT`.

use std::num::NonZeroU64;

use anyhow::{Context, Result, bail};
use calmix_core::order::{Order, Visit};
use calmix_core::rng::{Domain, Seed};

/// Prepares the case. A repetition reads `COUNT` positions spread over the first epoch, each on its own or through a cursor.
pub(crate) fn prepare(case: &[&str]) -> Result<impl FnMut() -> Result<u64>> {
    let &[way, samples, count] = case else {
        bail!("the cases of order are `at|cursor SAMPLES COUNT`, not {case:?}");
    };
    let len: NonZeroU64 = samples.parse().with_context(|| format!("`{samples}` is not a count"))?;
    let count: u64 = count.parse().with_context(|| format!("`{count}` is not a count"))?;
    let order = Order { seed: Seed(1), domain: Domain::UnlabelledOrder, len };
    let mut cursor = order.cursor();
    let mut at: Box<dyn FnMut(u64) -> Visit> = match way {
        "at" => Box::new(move |position| order.at(position)),
        "cursor" => Box::new(move |position| cursor.at(position)),
        other => bail!("`{other}` is neither `at` nor `cursor`"),
    };
    Ok(move || Ok((0..count).fold(0, |sum, n| sum ^ at(n * 7_919 % len).index)))
}
