//! The tests of `calmix-core` from outside. They are one program, because linking a program for each file takes minutes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)] // in what the tests share

mod golden_method;
mod order;
mod plan_properties;
