//! A thread that watches the connection to the next rank.
//!
//! NCCL does not notice that a peer has died, and neither does a process that is computing. But the kernel closes the connections
//! of a dead process immediately; the previous rank notices that and notifies all others through the store.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use crate::binding::{C10dError, C10dGroup, PeerWatch};

/// The watch of the next rank. It must be dropped before the group's connections are closed.
pub(crate) struct Neighbour {
    watch: Arc<PeerWatch>,
    /// Closed when the thread has released the connection.
    released: Receiver<()>,
}

impl Neighbour {
    /// Starts the thread; it calls `lost` if the connection closes.
    pub(crate) fn watch(
        group: &C10dGroup,
        next: usize,
        lost: impl FnOnce() + Send + 'static,
    ) -> Result<Self, C10dError> {
        let watch = Arc::new(group.watch(next)?);
        let (held, (holds, released)) = (Arc::clone(&watch), channel());
        let spawned = std::thread::Builder::new().name("calmix-neighbour".into()).spawn(move || {
            let outcome = held.wait();
            drop((held, holds));
            if outcome.is_err() {
                lost();
            }
        });
        spawned.map_err(|error| C10dError::new(format!("a thread cannot be started: {error}")))?;
        Ok(Self { watch, released })
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.watch.stop();
        // The thread is not joined: if the store is frozen, it may still be trying to notify the others.
        let _ = self.released.recv();
    }
}
