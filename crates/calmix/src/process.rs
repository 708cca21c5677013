//! This process and others: signals, threads, launchers, and the program with libtorch.

pub mod input_shard;
pub mod launched;
pub mod startup;
pub mod stop;
pub mod supervise;
pub mod torch_program;
pub mod version;
