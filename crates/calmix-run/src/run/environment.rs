//! The environment in which a run was made.

use std::env::consts::{ARCH, OS};

use serde::{Deserialize, Serialize};

/// The versions, device and data of a run, as stored in `environment.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunEnvironment {
    /// The version of calmix.
    pub calmix: String,
    /// The commit that the program was compiled from, as in [`Build`].
    #[serde(default = "unknown")]
    pub commit: String,
    /// The optional features compiled in.
    #[serde(default)]
    pub features: Vec<String>,
    /// The version of the library that computes.
    pub engine: String,
    /// The device that the run uses.
    pub device: String,
    /// The operating system and the processor's architecture.
    pub system: String,
    /// The fingerprint of the dataset.
    pub dataset: String,
    /// The hash of the split; empty in runs of format 1.
    #[serde(default)]
    pub split: String,
}

/// The build of a program. Only the program knows it: a library is compiled without asking git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// The hash of its commit, followed by `-dirty` if files were modified; `unknown` if it could not be determined.
    pub commit: String,
    /// The optional features compiled in.
    pub features: Vec<String>,
}

impl Default for Build {
    fn default() -> Self {
        Self { commit: unknown(), features: Vec::new() }
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

impl RunEnvironment {
    /// Describes this program on this system.
    pub fn current(
        build: Build,
        engine: impl Into<String>,
        device: impl Into<String>,
        dataset: impl Into<String>,
        split: impl Into<String>,
    ) -> Self {
        Self {
            calmix: env!("CARGO_PKG_VERSION").to_owned(),
            commit: build.commit,
            features: build.features,
            engine: engine.into(),
            device: device.into(),
            system: format!("{OS} {ARCH}"),
            dataset: dataset.into(),
            split: split.into(),
        }
    }
}
