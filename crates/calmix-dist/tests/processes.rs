//! Real processes: the test binary starts itself once for each rank.
//!
//! The time limits are those of the specification: a dead process is noticed within a second, a frozen one within a tenth of the
//! timeout.
#![allow(clippy::cast_possible_wrap)]

mod crew;
mod failures;
mod network;
mod operations;
mod rank;
mod torchrun;
