//! What a checkpoint guarantees, tested by breaking what it stands on.

mod damage;
mod faults;
mod forgetful;
mod journal;
mod killed;
mod power_failure;
mod retention;
mod state;
