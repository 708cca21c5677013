//! The tests of `calmix-formats` from outside. They are one program, because linking a program for each file takes minutes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)] // in what the tests share

mod bombs;
mod damage;
mod decode;
mod jpeg_kinds;
mod tar;
mod vectors_refused;
