//! The tests of `calmix-metrics` from outside. They are one program, because linking a program for each file takes minutes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)] // in what the tests share

mod calibration_properties;
mod golden_calibration;
mod golden_maps;
mod guarantees;
mod maps_properties;
