//! What a run was made with, besides its recipe.

use std::env::consts::{ARCH, OS};

use serde::{Deserialize, Serialize};

/// Versions, device and data of a run, as `environment.json` has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunEnvironment {
    /// The version of calmix.
    pub calmix: String,
    /// The version of the library that computes.
    pub engine: String,
    /// What it computes on.
    pub device: String,
    /// The operating system and the processor's architecture.
    pub system: String,
    /// The fingerprint of the dataset.
    pub dataset: String,
    /// The hash of the split; empty in runs of format 1.
    #[serde(default)]
    pub split: String,
}

impl RunEnvironment {
    /// This program on this system.
    pub fn here(
        engine: impl Into<String>,
        device: impl Into<String>,
        dataset: impl Into<String>,
        split: impl Into<String>,
    ) -> Self {
        Self {
            calmix: env!("CARGO_PKG_VERSION").to_owned(),
            engine: engine.into(),
            device: device.into(),
            system: format!("{OS} {ARCH}"),
            dataset: dataset.into(),
            split: split.into(),
        }
    }
}
