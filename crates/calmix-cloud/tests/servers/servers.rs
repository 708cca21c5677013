//! Servers for tests: one that serves a folder, one that stands before another server, and the faults of both.

mod fault_proxy;
mod file_server;
mod http_message;

#[allow(unused_imports, reason = "each test uses some of them")]
pub(crate) use fault_proxy::FaultProxy;
#[allow(unused_imports, reason = "each test uses some of them")]
pub(crate) use file_server::FileServer;
#[allow(unused_imports, reason = "each test uses some of them")]
pub(crate) use http_message::{Fault, Faults};
