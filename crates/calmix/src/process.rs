//! This process and others: signals, threads, launchers, and the program with libtorch.

pub mod cores;
pub mod input_shard;
pub mod launched;
pub mod processor;
pub mod runs_here;
pub mod same_command;
pub mod stop;
pub mod supervise;
pub mod telemetry;
pub mod torch_program;
pub mod version;
