//! The functions of `shim/c10d.h`.

use std::ffi::{c_char, c_int, c_void};

pub(super) const DONE: c_int = 0;
pub(super) const TIMED_OUT: c_int = 2;

/// The buffer that a function writes its error message to.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ErrorBuffer {
    pub(super) text: *mut c_char,
    pub(super) capacity: usize,
}

#[repr(C)]
pub(super) struct CalmixStore {
    _private: [u8; 0],
}

#[repr(C)]
pub(super) struct CalmixGroup {
    _private: [u8; 0],
}

/// A receive operation that watches a connection.
#[repr(C)]
pub(super) struct CalmixWatch {
    _private: [u8; 0],
}

type NewStore = *mut *mut CalmixStore;
type NewGroup = *mut *mut CalmixGroup;
type Text = *const c_char;

unsafe extern "C" {
    pub(super) fn calmix_store_tcp(
        host: Text,
        port: u16,
        is_server: bool,
        listener: c_int,
        timeout: i64,
        store: NewStore,
        error: ErrorBuffer,
    ) -> c_int;
    pub(super) fn calmix_store_prefix(
        inner: *const CalmixStore,
        prefix: Text,
        store: NewStore,
        error: ErrorBuffer,
    ) -> c_int;
    pub(super) fn calmix_store_clone(
        original: *const CalmixStore,
        store: NewStore,
        error: ErrorBuffer,
    ) -> c_int;
    pub(super) fn calmix_store_free(store: *mut CalmixStore);
    pub(super) fn calmix_store_set(
        store: *const CalmixStore,
        key: Text,
        value: Text,
        error: ErrorBuffer,
    ) -> c_int;
    pub(super) fn calmix_store_add(
        store: *const CalmixStore,
        key: Text,
        amount: i64,
        sum: *mut i64,
        error: ErrorBuffer,
    ) -> c_int;
    pub(super) fn calmix_store_get(
        store: *const CalmixStore,
        key: Text,
        value: *mut c_char,
        capacity: usize,
        error: ErrorBuffer,
    ) -> c_int;
    pub(super) fn calmix_store_wait(
        store: *const CalmixStore,
        key: Text,
        timeout: i64,
        error: ErrorBuffer,
    ) -> c_int;
    pub(super) fn calmix_store_has(
        store: *const CalmixStore,
        keys: *const Text,
        count: usize,
        all: *mut bool,
        error: ErrorBuffer,
    ) -> c_int;
    pub(super) fn calmix_group_gloo(
        store: *const CalmixStore,
        rank: c_int,
        size: c_int,
        host: Text,
        interface: Text,
        timeout: i64,
        group: NewGroup,
        error: ErrorBuffer,
    ) -> c_int;
    pub(super) fn calmix_group_nccl(
        store: *const CalmixStore,
        rank: c_int,
        size: c_int,
        device: c_int,
        timeout: i64,
        patience: i64,
        group: NewGroup,
        error: ErrorBuffer,
    ) -> c_int;
    pub(super) fn calmix_group_abort(group: *mut CalmixGroup);
    pub(super) fn calmix_group_free(group: *mut CalmixGroup);
    pub(super) fn calmix_watch(
        group: *const CalmixGroup,
        peer: c_int,
        watch: *mut *mut CalmixWatch,
        error: ErrorBuffer,
    ) -> c_int;
    pub(super) fn calmix_watch_wait(watch: *const CalmixWatch, error: ErrorBuffer) -> c_int;
    pub(super) fn calmix_watch_stop(watch: *const CalmixWatch);
    pub(super) fn calmix_watch_free(watch: *mut CalmixWatch);
    pub(super) fn calmix_all_reduce(
        group: *const CalmixGroup,
        tensor: *mut c_void,
        stop: *const bool,
        error: ErrorBuffer,
    ) -> c_int;
    pub(super) fn calmix_broadcast(
        group: *const CalmixGroup,
        tensor: *mut c_void,
        root: c_int,
        stop: *const bool,
        error: ErrorBuffer,
    ) -> c_int;
    pub(super) fn calmix_all_gather(
        group: *const CalmixGroup,
        output: *mut c_void,
        input: *const c_void,
        stop: *const bool,
        error: ErrorBuffer,
    ) -> c_int;
    pub(super) fn calmix_all_to_all(
        group: *const CalmixGroup,
        output: *mut c_void,
        input: *const c_void,
        receive: *const i64,
        send: *const i64,
        size: usize,
        stop: *const bool,
        error: ErrorBuffer,
    ) -> c_int;
    pub(super) fn calmix_barrier(group: *const CalmixGroup, stop: *const bool, error: ErrorBuffer) -> c_int;
}
