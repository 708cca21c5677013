//! Servers for tests: one that serves a folder, one that stands before another server, and the faults of both.

mod fault_proxy;
mod file_server;
mod http_message;

pub use fault_proxy::FaultProxy;
pub use file_server::FileServer;
pub use http_message::{Fault, Faults};
