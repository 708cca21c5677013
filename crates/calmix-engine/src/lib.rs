//! Networks and the training step, on libtorch.
//!
//! A step has two halves. [`observe`] runs the network on a batch; [`learn`] updates the weights according to a *plan* for the
//! batch. The engine does not know the method: which pseudo-labels count and which images are mixed is decided between the two by
//! [`calmix_core::plan::plan_step`], on plain numbers. No type of libtorch is part of the interface: bytes, slices and names go
//! in and come out.
//!
//! ```
//! use calmix_core::planner::Planner;
//! use calmix_core::preset;
//! use calmix_core::pseudo::{Base, FixMatch};
//! use calmix_core::rng::Seed;
//! use calmix_core::schedule::RunStep;
//! use calmix_dist::ProcessGroup;
//! use calmix_core::micro_batching::Partition;
//! use calmix_engine::batch::{Batch, LabelledRows, UnlabelledRows};
//! use calmix_recipe::device::Device;
//! use calmix_engine::engine::{Engine, Settings, Weights};
//! use calmix_recipe::model_spec::ModelSpec;
//! use calmix_recipe::step_kind::StepKind;
//! use calmix_recipe::step_kind::SumKind;
//! use calmix_engine::optimiser::Sgd;
//! use calmix_recipe::precision::Precision;
//!
//! let settings = Settings {
//!     model: ModelSpec { mean: [0.5; 3], std: [0.25; 3], ..ModelSpec::new("wrn-10-1".parse()?, 8) },
//!     classes: 3,
//!     device: Device::Cpu,
//!     precision: Precision::F32,
//!     optimiser: Sgd::default(),
//!     ema_decay: 0.999,
//!     norm_momentum: None,
//!     clip: None,
//!     step: StepKind::Lean,
//!     sum: SumKind::Tree,
//! };
//! let mut engine = Engine::new(settings, Seed(1))?;
//!
//! let method = preset::paper(Base::FixMatch(FixMatch::default()));
//! let (ids, more) = ([0, 1, 2], [3, 4, 5, 6]);
//! let mut planner = Planner::new(method, 3, &ids, 4, Seed(1));
//! let images = |n: usize| vec![127; n * 8 * 8 * 3];
//! let (x, weak, strong) = (images(3), images(4), images(4));
//! let batch = Batch {
//!     step: 0,
//!     labelled: LabelledRows { ids: &ids, labels: &[0, 1, 2], pixels: &x },
//!     unlabelled: UnlabelledRows { ids: &more, weak: &weak, strong: &strong },
//!     partition: &Partition::whole(3, 4),
//! };
//! let observed = engine.observe(&method, &batch, false)?;
//! let planned = planner.plan(&observed.observation()?, &[0, 1, 2, 3], RunStep { step: 0, steps: 1_000 })?;
//! let plan = planner.commit(planned);
//! let output = engine.learn(&ProcessGroup::alone(), &method, observed, &plan.into(), 0.03)?;
//! assert!(output.total > 0.0);
//! assert_eq!(engine.predict(&x, Weights::Ema)?.logits.len(), 3 * 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Reproducibility
//!
//! On a CPU a step is a pure function of the engine, the batch and the number of threads. A
//! [`EngineSnapshot`](engine::EngineSnapshot) restores it bit for bit. On a GPU libtorch may sum in any order in some
//! convolutions; nothing is guaranteed there yet.
#![forbid(unsafe_code)]
// libtorch counts in i64; any number that fits into memory fits into it.
#![allow(clippy::cast_possible_wrap)]

pub mod batch;
pub mod device;
pub mod engine;
pub mod error;
mod images;
pub mod learn;
pub mod micro_batch_plan;
pub mod network;
pub mod observe;
pub mod optimiser;
pub mod precision;
pub mod predictor;
pub mod scalar;
pub mod weights;
