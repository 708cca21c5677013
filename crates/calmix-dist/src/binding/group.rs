//! A process group of c10d: connections to all peers, and collectives.

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tch::Tensor;

use super::ffi::{self, CalmixGroup, CalmixWatch, ErrorBuffer};
use super::{C10dError, Store, c_string, call, milliseconds};

/// The connections to all peers. Dropping it closes them, which makes the peers' operations fail.
pub(crate) struct C10dGroup(NonNull<CalmixGroup>);

// SAFETY: c10d's groups belong to no thread; c10d runs operations on its own threads.
unsafe impl Send for C10dGroup {}

impl C10dGroup {
    /// Creates a Gloo group, for tensors of the host. `interface` names the network interface; if it is empty, the address `host`
    /// selects it.
    pub(crate) fn gloo(
        store: &Store,
        rank: usize,
        size: usize,
        host: &str,
        interface: &str,
        timeout: Duration,
    ) -> Result<Self, C10dError> {
        let (host, interface) = (c_string(host)?, c_string(interface)?);
        let (rank, size, timeout) = (c_int(rank)?, c_int(size)?, milliseconds(timeout));
        // SAFETY: `store` is alive, and c10d counts references to it; the strings end with a zero, and the shim copies
        // them; the last two pointers are valid for writes.
        Self::made(|group, error| unsafe {
            let (host, interface) = (host.as_ptr(), interface.as_ptr());
            ffi::calmix_group_gloo(store.as_ptr(), rank, size, host, interface, timeout, group, error)
        })
    }

    /// Creates an NCCL group for tensors of this GPU, connected to the peers' GPUs within `patience`.
    pub(crate) fn nccl(
        store: &Store,
        rank: usize,
        size: usize,
        device: usize,
        timeout: Duration,
        patience: Duration,
    ) -> Result<Self, C10dError> {
        let (rank, size, timeout) = (c_int(rank)?, c_int(size)?, milliseconds(timeout));
        let (device, patience) = (c_int(device)?, milliseconds(patience));
        // SAFETY: as above.
        Self::made(|group, error| unsafe {
            ffi::calmix_group_nccl(store.as_ptr(), rank, size, device, timeout, patience, group, error)
        })
    }

    /// Watches the connection to a peer from another thread.
    pub(crate) fn watch(&self, peer: usize) -> Result<PeerWatch, C10dError> {
        let (peer, mut watch) = (c_int(peer)?, ptr::null_mut());
        // SAFETY: the group is alive; `watch` is valid for writes.
        call(|error| unsafe { ffi::calmix_watch(self.0.as_ptr(), peer, &raw mut watch, error) })?;
        NonNull::new(watch).map(PeerWatch).ok_or_else(|| C10dError::new("c10d returned no receive"))
    }

    fn made(
        make: impl FnOnce(*mut *mut CalmixGroup, ErrorBuffer) -> std::ffi::c_int,
    ) -> Result<Self, C10dError> {
        let mut group = ptr::null_mut();
        call(|error| make(&raw mut group, error))?;
        NonNull::new(group).map(Self).ok_or_else(|| C10dError::new("c10d returned no group"))
    }

    /// All-reduces the sum over all ranks, in place; the order of addition is unspecified.
    pub(crate) fn all_reduce(&self, tensor: &mut Tensor, stop: &AtomicBool) -> Result<(), C10dError> {
        // SAFETY: a tensor of tch is a pointer to an `at::Tensor`, alive during the call, which returns only when c10d
        // has finished with it; `stop` outlives the call, and the shim only reads it, atomically.
        call(|error| unsafe { ffi::calmix_all_reduce(self.0.as_ptr(), as_mut(tensor), stop.as_ptr(), error) })
    }

    /// Broadcasts the tensor of rank `from`, in place.
    pub(crate) fn broadcast(
        &self,
        from: usize,
        tensor: &mut Tensor,
        stop: &AtomicBool,
    ) -> Result<(), C10dError> {
        let from = c_int(from)?;
        // SAFETY: as in `all_reduce`.
        call(|error| unsafe {
            ffi::calmix_broadcast(self.0.as_ptr(), as_mut(tensor), from, stop.as_ptr(), error)
        })
    }

    /// All-gathers the tensors of all ranks into `output`, in order of rank.
    pub(crate) fn all_gather(
        &self,
        output: &mut Tensor,
        input: &Tensor,
        stop: &AtomicBool,
    ) -> Result<(), C10dError> {
        // SAFETY: as in `all_reduce`; c10d checks the sizes.
        call(|error| unsafe {
            ffi::calmix_all_gather(self.0.as_ptr(), as_mut(output), as_const(input), stop.as_ptr(), error)
        })
    }

    /// Sends each rank its piece of `input`, and receives one piece from each into `output`; lengths are along the first
    /// dimension.
    pub(crate) fn all_to_all(
        &self,
        output: &mut Tensor,
        input: &Tensor,
        receive: &[i64],
        send: &[i64],
        stop: &AtomicBool,
    ) -> Result<(), C10dError> {
        if receive.len() != send.len() {
            return Err(C10dError::new("the numbers of sent and received pieces differ"));
        }
        // SAFETY: as in `all_reduce`; both slices have `size` counts, and the shim copies them.
        call(|error| unsafe {
            let (group, size) = (self.0.as_ptr(), send.len());
            let (receive, send, stop) = (receive.as_ptr(), send.as_ptr(), stop.as_ptr());
            ffi::calmix_all_to_all(group, as_mut(output), as_const(input), receive, send, size, stop, error)
        })
    }

    /// Ends the operations on the GPU after a failure; otherwise closing would wait for a dead peer.
    pub(crate) fn abort(&mut self) {
        // SAFETY: the group is alive, and no operation runs, because each has returned.
        unsafe { ffi::calmix_group_abort(self.0.as_ptr()) }
    }

    /// Waits until all ranks have called it.
    pub(crate) fn barrier(&self, stop: &AtomicBool) -> Result<(), C10dError> {
        // SAFETY: the group is alive; `stop` as in `all_reduce`.
        call(|error| unsafe { ffi::calmix_barrier(self.0.as_ptr(), stop.as_ptr(), error) })
    }
}

impl Drop for C10dGroup {
    fn drop(&mut self) {
        // SAFETY: the shim made it with `new`, and it is freed once; no operation runs, because each has returned.
        unsafe { ffi::calmix_group_free(self.0.as_ptr()) }
    }
}

fn as_mut(tensor: &mut Tensor) -> *mut c_void {
    tensor.as_mut_ptr().cast()
}

fn as_const(tensor: &Tensor) -> *const c_void {
    tensor.as_ptr().cast()
}

pub(super) fn c_int(number: usize) -> Result<std::ffi::c_int, C10dError> {
    std::ffi::c_int::try_from(number).map_err(|_| C10dError::new("there are too many processes"))
}

/// A watched connection to a peer. It keeps the connections of its group open, so it must be dropped before the group.
pub(crate) struct PeerWatch(NonNull<CalmixWatch>);

// SAFETY: one thread waits while another stops it; Gloo's buffer locks around both, and nothing else is called.
unsafe impl Send for PeerWatch {}
// SAFETY: as above.
unsafe impl Sync for PeerWatch {}

impl PeerWatch {
    /// Waits until [`stop`](Self::stop) is called; fails when the connection closes.
    pub(crate) fn wait(&self) -> Result<(), C10dError> {
        // SAFETY: it is alive until it is dropped.
        call(|error| unsafe { ffi::calmix_watch_wait(self.0.as_ptr(), error) })
    }

    pub(crate) fn stop(&self) {
        // SAFETY: as above.
        unsafe { ffi::calmix_watch_stop(self.0.as_ptr()) }
    }
}

impl Drop for PeerWatch {
    fn drop(&mut self) {
        // SAFETY: the shim made it with `new`, and it is freed once; no thread waits, because a waiting thread holds it too.
        unsafe { ffi::calmix_watch_free(self.0.as_ptr()) }
    }
}
