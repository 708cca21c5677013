//! What a checkpoint promises, tested by breaking what it stands on.
#![allow(clippy::unwrap_used, clippy::expect_used)] // in the functions that the tests share

#[path = "checkpoint/damage.rs"]
mod damage;
#[path = "checkpoint/faults.rs"]
mod faults;
#[path = "checkpoint/faulty.rs"]
mod faulty;
#[path = "checkpoint/killed.rs"]
mod killed;
#[path = "checkpoint/retention.rs"]
mod retention;
#[path = "checkpoint/state.rs"]
mod state;
