//! The tests of `calmix-heads` from outside. They are one program, because linking a program for each file takes minutes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)] // in what the tests share

mod feature_sets;
mod guarantees;
mod images;
mod label_copies;
mod vectors;
