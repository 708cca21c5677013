//! The mathematics of CalibrateMix and of the semi-supervised methods under it.
//!
//! Everything here is a pure function or plain state over slices: no I/O, no threads, no clock, no tensors. The
//! main function is [`plan::plan_step`], Algorithm 1 of the paper: it takes the outputs of a network for a batch and returns
//! the plan of the training step. [`planner::Planner`] holds its state.
//!
//! ```
//! use calmix_core::matrix::Matrix;
//! use calmix_core::observation::{Observation, Rows};
//! use calmix_core::planner::Planner;
//! use calmix_core::preset::paper;
//! use calmix_core::pseudo::{Base, FixMatch};
//! use calmix_core::rng::Seed;
//! use calmix_core::schedule::{RunStep, Start};
//!
//! // CalibrateMix over FixMatch as the paper defines it, but without its warm-up.
//! let mut method = paper(Base::FixMatch(FixMatch::default()));
//! method.mixup.start = Start::at(0);
//!
//! // Three classes; samples 0 and 1 are labelled, 2 to 5 are not: slots 0 to 3.
//! let mut planner = Planner::new(method, 3, &[0, 1], 4, Seed(0));
//! let (zx, fx) = ([2.0, 0.0, 0.0, 0.0, 0.5, 0.0], [1.0, 0.0, 0.0, 1.0]);
//! let zu = [9.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.1, 0.0, 0.2, 0.0, 0.1];
//! let fu = [1.0, 0.1, 0.2, 1.0, 0.7, 0.7, -1.0, 0.2];
//! let batch = Observation {
//!     labelled: Rows { ids: &[0, 1], logits: Matrix::new(&zx, 2, 3)?, features: Matrix::new(&fx, 2, 2)? },
//!     labels: &[0, 1],
//!     unlabelled: Rows {
//!         ids: &[2, 3, 4, 5],
//!         logits: Matrix::new(&zu, 4, 3)?,
//!         features: Matrix::new(&fu, 4, 2)?,
//!     },
//! };
//! let planned = planner.plan(&batch, &[0, 1, 2, 3], RunStep { step: 0, steps: 1 << 20 })?;
//! let plan = planner.commit(planned);
//! assert_eq!(plan.pseudo.labels, [0, 1, 1, 0]);
//! assert_eq!(plan.pseudo.weights, [1.0, 0.0, 0.0, 0.0]); // only the first is sure enough
//! assert_eq!(plan.mixes.len(), 2); // each labelled sample with an unlabelled one of the other half
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The paper's symbols
//!
//! | symbol | meaning | here |
//! |---|---|---|
//! | D_L, D_U | labelled and unlabelled batch | [`observation::Observation`] |
//! | ŷ | pseudo-label | [`pseudo::PseudoLabels::labels`] |
//! | ω (τ elsewhere) | confidence threshold | [`pseudo::FixMatch::threshold`] |
//! | λ_U | weight of the unlabelled loss | [`method::Method::unlabelled_weight`] |
//! | AUM, APM | how easy a sample is | [`margin::LabelledMargins`], [`margin::MarginStore`] |
//! | δ | smoothing of the pseudo-margins | [`margin::Averaging::Cumulative`] |
//! | τ_L, τ_U | medians of a batch | [`mixup::split::Split`] |
//! | k | candidates for a partner | [`mixup::pair::Dissimilar`] |
//! | γ | mixup coefficient, λ in the literature | [`mixup::LambdaSource`], [`mixup::Mix::lambda`] |
//! | D_M | the mixtures | [`plan::StepPlan::mixes`] |
//!
//! Where the paper leaves a choice open or contradicts the code that its authors released, the choice is an enum whose
//! documentation quotes the sentence; [`preset`] has both readings.
//!
//! # Modules
//!
//! - the method: [`plan`] and [`planner`], [`observation`], [`method`] with its smoothing and its feedback, [`preset`],
//!   [`pseudo`], [`margin`], [`mixup`] with the choice of pairs, [`loss`], [`schedule`], and [`samples`] for the state of each
//!   sample;
//! - how a step is divided into groups and micro-batches: [`micro_batching`]; the order of samples: [`order`];
//! - how settings are declared: [`settings`];
//! - what a function refuses: [`error`];
//! - building blocks: [`rng`], [`matrix`], [`softmax`], [`lanes`].
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod error;
pub mod lanes;
pub mod loss;
pub mod margin;
pub mod matrix;
pub mod method;
pub mod micro_batching;
pub mod mixup;
pub mod observation;
pub mod order;
pub mod plan;
pub mod planner;
pub mod preset;
pub mod pseudo;
pub mod rng;
pub mod samples;
pub mod schedule;
pub mod settings;
pub mod softmax;
