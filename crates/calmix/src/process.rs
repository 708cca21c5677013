//! This process and others: signals, threads, launchers, and `calmix-torch`.

pub mod input_shard;
pub mod launched;
pub mod startup;
pub mod stop;
pub mod supervise;
pub mod torch_program;
pub mod version;
