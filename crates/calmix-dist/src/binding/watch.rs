//! A receive of c10d to which no peer sends: it fails when the connection closes.

use std::ptr::NonNull;

use super::ffi::{self, CalmixWatch};
use super::{C10dError, call};

/// The connection to a peer, watched. It keeps the connections of its group open, so it has to go before the group.
pub(crate) struct PeerWatch(NonNull<CalmixWatch>);

// SAFETY: one thread waits while another stops it; Gloo's buffer locks around both, and nothing else is called.
unsafe impl Send for PeerWatch {}
// SAFETY: as above.
unsafe impl Sync for PeerWatch {}

impl PeerWatch {
    pub(super) fn new(watch: NonNull<CalmixWatch>) -> Self {
        Self(watch)
    }

    /// Returns after [`stop`](Self::stop), and fails when the connection closes.
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
