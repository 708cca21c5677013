//! What a checkpoint guarantees, tested by breaking what it stands on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // in the functions that the tests share

#[path = "checkpoint/damage.rs"]
mod damage;
#[path = "checkpoint/faults.rs"]
mod faults;
#[path = "checkpoint/forgetful.rs"]
mod forgetful;
#[path = "checkpoint/journal.rs"]
mod journal;
#[path = "checkpoint/killed.rs"]
mod killed;
#[path = "checkpoint/power_failure.rs"]
mod power_failure;
#[path = "checkpoint/retention.rs"]
mod retention;
#[path = "checkpoint/state.rs"]
mod state;
