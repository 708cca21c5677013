//! Numbers that may not be finite, which JSON writes as `null`.

use serde::{Deserialize, Deserializer};

/// Reads a number; `null` becomes NaN.
pub(super) fn or_nan<'de, D, F>(from: D) -> Result<F, D::Error>
where
    D: Deserializer<'de>,
    F: Deserialize<'de> + From<f32>,
{
    Ok(Option::deserialize(from)?.unwrap_or_else(|| f32::NAN.into()))
}

/// Reads a field that may be absent. A `null` was measured and is not finite.
pub(super) fn if_there<'de, D, F>(from: D) -> Result<Option<F>, D::Error>
where
    D: Deserializer<'de>,
    F: Deserialize<'de> + From<f32>,
{
    or_nan(from).map(Some)
}
