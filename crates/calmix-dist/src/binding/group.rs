//! A process group: connections to all peers, and operations that all of them carry out together.

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tch::Tensor;

use super::foreign::{self, CalmixGroup, Said};
use super::{Store, Thrown, c_string, call, milliseconds};

/// Connections to all peers. Dropping it closes them, which makes the peers' operations fail.
pub(crate) struct Group(NonNull<CalmixGroup>);

// SAFETY: c10d's groups belong to no thread; operations are carried out by threads of their own.
unsafe impl Send for Group {}

impl Group {
    /// Gloo: tensors of the host, over the network interface with this address, or of this name where there is one.
    pub(crate) fn gloo(
        store: &Store,
        rank: usize,
        size: usize,
        host: &str,
        interface: &str,
        timeout: Duration,
    ) -> Result<Self, Thrown> {
        let (host, interface) = (c_string(host)?, c_string(interface)?);
        let (rank, size, timeout) = (c_int(rank)?, c_int(size)?, milliseconds(timeout));
        // SAFETY: `store` is alive and shared by counting references; the strings end with a zero and are copied; the
        // last two are places to write.
        Self::made(|group, said| unsafe {
            let (host, interface) = (host.as_ptr(), interface.as_ptr());
            foreign::calmix_group_gloo(store.as_ptr(), rank, size, host, interface, timeout, group, said)
        })
    }

    /// NCCL: tensors of the process's current GPU.
    pub(crate) fn nccl(store: &Store, rank: usize, size: usize, timeout: Duration) -> Result<Self, Thrown> {
        let (rank, size, timeout) = (c_int(rank)?, c_int(size)?, milliseconds(timeout));
        // SAFETY: as above.
        Self::made(|group, said| unsafe {
            foreign::calmix_group_nccl(store.as_ptr(), rank, size, timeout, group, said)
        })
    }

    fn made(make: impl FnOnce(*mut *mut CalmixGroup, Said) -> std::ffi::c_int) -> Result<Self, Thrown> {
        let mut group = ptr::null_mut();
        call(|said| make(&raw mut group, said))?;
        NonNull::new(group).map(Self).ok_or_else(|| Thrown::new("c10d made no group"))
    }

    /// The sum over all processes, in place, in no order that is promised.
    pub(crate) fn all_reduce(&self, tensor: &mut Tensor, stop: &AtomicBool) -> Result<(), Thrown> {
        // SAFETY: a tensor of tch is a pointer to an `at::Tensor`, alive during the call, which returns only when c10d
        // is done with it; `stop` outlives the call and is only read, atomically.
        call(|said| unsafe {
            foreign::calmix_all_reduce(self.0.as_ptr(), place(tensor), stop.as_ptr(), said)
        })
    }

    /// The values of one process, to all, in place.
    pub(crate) fn broadcast(
        &self,
        from: usize,
        tensor: &mut Tensor,
        stop: &AtomicBool,
    ) -> Result<(), Thrown> {
        let from = c_int(from)?;
        // SAFETY: as in `all_reduce`.
        call(|said| unsafe {
            foreign::calmix_broadcast(self.0.as_ptr(), place(tensor), from, stop.as_ptr(), said)
        })
    }

    /// The values of all processes, one after the other in `output`.
    pub(crate) fn all_gather(
        &self,
        output: &mut Tensor,
        input: &Tensor,
        stop: &AtomicBool,
    ) -> Result<(), Thrown> {
        // SAFETY: as in `all_reduce`; that the sizes fit is checked by c10d.
        call(|said| unsafe {
            foreign::calmix_all_gather(self.0.as_ptr(), place(output), value(input), stop.as_ptr(), said)
        })
    }

    /// A piece of `input` for each process, and one from each into `output`; lengths along the first dimension.
    pub(crate) fn all_to_all(
        &self,
        output: &mut Tensor,
        input: &Tensor,
        receive: &[i64],
        send: &[i64],
        stop: &AtomicBool,
    ) -> Result<(), Thrown> {
        if receive.len() != send.len() {
            return Err(Thrown::new("as many pieces are sent as are received"));
        }
        // SAFETY: as in `all_reduce`; the counts are as many as is said and are copied.
        call(|said| unsafe {
            let (group, size) = (self.0.as_ptr(), send.len());
            let (receive, send, stop) = (receive.as_ptr(), send.as_ptr(), stop.as_ptr());
            foreign::calmix_all_to_all(group, place(output), value(input), receive, send, size, stop, said)
        })
    }

    /// Returns when all processes are here.
    pub(crate) fn barrier(&self, stop: &AtomicBool) -> Result<(), Thrown> {
        // SAFETY: the group is alive; `stop` as in `all_reduce`.
        call(|said| unsafe { foreign::calmix_barrier(self.0.as_ptr(), stop.as_ptr(), said) })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // SAFETY: made by `new` in the shim, freed once; no operation runs, for each has returned before.
        unsafe { foreign::calmix_group_free(self.0.as_ptr()) }
    }
}

fn place(tensor: &mut Tensor) -> *mut c_void {
    tensor.as_mut_ptr().cast()
}

fn value(tensor: &Tensor) -> *const c_void {
    tensor.as_ptr().cast()
}

pub(super) fn c_int(number: usize) -> Result<std::ffi::c_int, Thrown> {
    std::ffi::c_int::try_from(number).map_err(|_| Thrown::new("there cannot be that many processes"))
}
