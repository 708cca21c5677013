//! Threads and locks of the pool: the standard library's, or shuttle's in tests that explore thread orders.

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
