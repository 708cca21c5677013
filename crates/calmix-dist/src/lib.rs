//! Process groups for training one network in several processes.
//!
//! A job is a number of processes, each with a rank. The processes meet at a store, which rank 0 or the launcher hosts,
//! and connect to each other. From then on they call the same collectives in the same order: [`ProcessGroup`].
//! Underneath is c10d, the library inside libtorch that PyTorch's jobs run on: Gloo between hosts, NCCL between GPUs.
//!
//! ```
//! use calmix_dist::{LaunchInfo, ProcessGroup};
//! use std::time::Duration;
//! use tch::{Device, Tensor};
//!
//! // torchrun, Slurm and `calmix train --processes` set the rank; without them there is one process.
//! let group = match LaunchInfo::from_environment(|name| std::env::var(name).ok())? {
//!     Some(launch) => ProcessGroup::connect(&launch, Device::Cpu, Duration::from_mins(10))?,
//!     None => ProcessGroup::alone(),
//! };
//! // The gradients of four micro-batches. Two, three or four processes would get the same bits.
//! let gradients = [0.1_f32, 0.2, 0.3, 0.4].map(|x| Tensor::from_slice(&[x, 2.0 * x]));
//! let sum = group.tree_sum(gradients.len(), gradients.into())?;
//! assert_eq!(Vec::<f32>::try_from(sum)?, [(0.1 + 0.2) + (0.3 + 0.4), (0.2 + 0.4) + (0.6 + 0.8)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The same bits on any number of processes
//!
//! An ordinary all-reduce adds in an order that depends on the number of processes. [`ProcessGroup::tree_sum`] adds the
//! gradients of N micro-batches along one binary tree over these terms, whichever rank holds them: see [`tree`].
//!
//! # When a process dies
//!
//! Every operation of the other ranks fails within a second, and the error names the missing rank: after a failure each
//! process queries all ranks through the store, and a rank that does not respond is missing. A rank that is in no operation,
//! or in one of NCCL, which does not notice a dead peer, is notified: each process watches its connection to the next
//! rank. A frozen process is noticed at the timeout. After a failure a group refuses every operation: tensors may hold
//! anything, and processes may be at different steps. Restart all processes from the last checkpoint, as torchrun's
//! `--max-restarts` does.
//!
//! c10d's own log on standard error is off unless the environment sets `TORCH_CPP_LOG_LEVEL` (`INFO`, `WARNING`). With
//! NCCL a launcher should set `TORCH_NCCL_ASYNC_ERROR_HANDLING=0`, or NCCL's watchdog ends the process before it can
//! report the error.
//!
//! # NCCL
//!
//! The feature `nccl` adds NCCL for tensors on GPUs; bytes and tensors of the host still go through Gloo. The GPUs are
//! connected within the timeout of [`ProcessGroup::connect`]; after a failure NCCL's communicators are aborted before they
//! are freed. The feature compiles and links, but has never been run: no machine available to the project has a GPU.

// libtorch counts in i64.
#![allow(clippy::cast_possible_wrap)]

mod binding;
mod error;
mod liveness;
mod neighbour;
mod process_group;
pub mod traffic;
pub mod tree;

pub use binding::gpu;
pub use calmix_io::process::launch;
pub use calmix_io::process::launch::{LaunchInfo, Launcher};
pub use error::{DistError, Failure, Operation};
pub use process_group::ProcessGroup;
