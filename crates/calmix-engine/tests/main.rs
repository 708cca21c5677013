//! The tests of `calmix-engine` from outside. They are one program, because linking a program for each file takes minutes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)] // in what the tests share

mod memory;
mod methods;
mod micro_batches;
mod parity;
mod precision;
mod refusals;
mod resume;
mod run;
mod weights;
