//! Many processes that train one network: what they tell each other, and how they find each other.
//!
//! A job is a number of processes, each with a rank. They meet through a store that one of them (or the launcher) keeps,
//! connect all to all, and from then on carry out the same operations in the same order: [`Processes`]. Underneath is
//! c10d, the library inside libtorch that PyTorch's jobs run on: Gloo between hosts, NCCL between GPUs.
//!
//! ```
//! use calmix_dist::{Place, Processes};
//! use std::time::Duration;
//! use tch::{Device, Tensor};
//!
//! // torchrun, Slurm and `calmix train --processes` say who we are; without them we are alone.
//! let processes = match Place::from_environment(|name| std::env::var(name).ok())? {
//!     Some(place) => Processes::connect(&place, Device::Cpu, Duration::from_mins(10))?,
//!     None => Processes::alone(),
//! };
//! // Four parts of a batch, each with its gradient. Two or four processes would get the same bits.
//! let parts = [0.1_f32, 0.2, 0.3, 0.4].map(|x| Tensor::from_slice(&[x, 2.0 * x]));
//! let sum = processes.tree_sum(parts.into())?;
//! assert_eq!(Vec::<f32>::try_from(sum)?, [(0.1 + 0.2) + (0.3 + 0.4), (0.2 + 0.4) + (0.6 + 0.8)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The same bits on any number of processes
//!
//! An ordinary all-reduce adds in an order that depends on how many processes there are. [`Processes::tree_sum`] adds
//! the N parts of a batch in one binary tree over the parts, whoever holds them: see [`tree`].
//!
//! # When a process dies
//!
//! Every operation of the others ends with an error within a second, and the error names the rank: after a failure
//! everybody is asked through the store, and who does not answer is missing. A frozen process is noticed at the timeout.
//! After a failure a group refuses everything: tensors may hold anything, and processes may be at different steps. Start
//! all of them again from the last checkpoint, as torchrun's `--max-restarts` does.
//!
//! c10d's own log on standard error is silent unless `TORCH_CPP_LOG_LEVEL` in the environment says how loud it shall be
//! (`INFO`, `WARNING`). With NCCL a launcher should set `TORCH_NCCL_ASYNC_ERROR_HANDLING=0`, or NCCL's watchdog ends a
//! process before the error can be told.
//!
//! # NCCL
//!
//! Behind the feature `nccl`, for tensors on GPUs; bytes and tensors of the host go through Gloo all the same. It is
//! compiled and linked, but no machine that this was written on has a GPU: it has never been run.

// libtorch counts in i64.
#![allow(clippy::cast_possible_wrap)]

mod binding;
mod error;
pub mod launch;
mod processes;
mod roll_call;
pub mod traffic;
pub mod tree;

pub use error::{DistError, Failure, Operation};
pub use launch::{LaunchError, Launcher, Place};
pub use processes::Processes;
