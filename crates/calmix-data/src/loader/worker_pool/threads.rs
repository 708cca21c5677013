//! Threads and locks of the pool: those of the standard library, or of shuttle in the tests that run them in many orders.

#[cfg(not(all(test, shuttle)))]
pub(super) use std::{
    sync::{Condvar, Mutex, MutexGuard},
    thread::{Builder, JoinHandle},
};

#[cfg(all(test, shuttle))]
pub(super) use shuttle::{
    sync::{Condvar, Mutex, MutexGuard},
    thread::{Builder, JoinHandle},
};
