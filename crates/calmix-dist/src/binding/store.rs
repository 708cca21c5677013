//! A store of c10d: keys and values that all processes share.

use std::ffi::{c_char, c_int};
use std::net::{IpAddr, TcpListener};
use std::os::fd::IntoRawFd;
use std::ptr::{self, NonNull};
use std::time::Duration;

use super::ffi::{self, CalmixStore};
use super::{C10dError, c_string, call, milliseconds, text_of};

/// Keys and values that all processes share.
pub(crate) struct Store(NonNull<CalmixStore>);

// SAFETY: c10d's stores belong to no thread: they own sockets or a path, and lock around each use.
unsafe impl Send for Store {}

impl Store {
    /// Opens the store at an address. The process with `is_server` hosts it, on all addresses of its host.
    pub(crate) fn tcp(host: &str, port: u16, is_server: bool, timeout: Duration) -> Result<Self, C10dError> {
        Self::with_listener(host, port, is_server, -1, timeout)
    }

    /// Hosts the store on this address only, for a run whose processes are all on this host: on all addresses, any machine in the
    /// network could read and write its keys.
    pub(crate) fn host_on(address: IpAddr, port: u16, timeout: Duration) -> Result<Self, C10dError> {
        let listener =
            TcpListener::bind((address, port)).map_err(|error| C10dError::new(error.to_string()))?;
        // c10d takes ownership of the socket, and closes it with the store.
        Self::with_listener(&address.to_string(), port, true, listener.into_raw_fd(), timeout)
    }

    fn with_listener(
        host: &str,
        port: u16,
        is_server: bool,
        listener: c_int,
        timeout: Duration,
    ) -> Result<Self, C10dError> {
        let host = c_string(host)?;
        let timeout = milliseconds(timeout);
        // SAFETY: `host` ends with a zero and outlives the call, which copies it; `listener` is -1 or an open socket that
        // nothing else owns; the other two pointers are valid for writes.
        Self::made(|store, error| unsafe {
            ffi::calmix_store_tcp(host.as_ptr(), port, is_server, listener, timeout, store, error)
        })
    }

    /// Returns the same store with a prefix before every key.
    pub(crate) fn prefixed(&self, prefix: &str) -> Result<Self, C10dError> {
        let prefix = c_string(prefix)?;
        // SAFETY: as above; `self` is alive, and c10d counts references to the inner store.
        Self::made(|store, error| unsafe {
            ffi::calmix_store_prefix(self.0.as_ptr(), prefix.as_ptr(), store, error)
        })
    }

    /// Opens a second connection to the same store, so that one thread can wait while another writes.
    pub(crate) fn connect_again(&self) -> Result<Self, C10dError> {
        // SAFETY: `self` is alive; the other two pointers are valid for writes.
        Self::made(|store, error| unsafe { ffi::calmix_store_clone(self.0.as_ptr(), store, error) })
    }

    fn made(make: impl FnOnce(*mut *mut CalmixStore, ffi::ErrorBuffer) -> c_int) -> Result<Self, C10dError> {
        let mut store = ptr::null_mut();
        call(|error| make(&raw mut store, error))?;
        NonNull::new(store).map(Self).ok_or_else(|| C10dError::new("c10d returned no store"))
    }

    pub(crate) fn set(&self, key: &str, value: &str) -> Result<(), C10dError> {
        let (key, value) = (c_string(key)?, c_string(value)?);
        // SAFETY: `self` is alive; both strings end with a zero and outlive the call, which copies them.
        call(|error| unsafe { ffi::calmix_store_set(self.0.as_ptr(), key.as_ptr(), value.as_ptr(), error) })
    }

    /// Adds to a counter that starts at zero; returns the sum.
    pub(crate) fn add(&self, key: &str, amount: i64) -> Result<i64, C10dError> {
        let (key, mut sum) = (c_string(key)?, 0);
        // SAFETY: as above; `sum` is valid for writes and outlives the call.
        call(|error| unsafe {
            ffi::calmix_store_add(self.0.as_ptr(), key.as_ptr(), amount, &raw mut sum, error)
        })?;
        Ok(sum)
    }

    /// Waits for a key, and returns its value, which must be short.
    pub(crate) fn get(&self, key: &str) -> Result<String, C10dError> {
        let (key, mut value) = (c_string(key)?, [0_u8; 256]);
        // SAFETY: as above; the shim writes at most `value.len()` bytes into `value`.
        call(|error| unsafe {
            let buffer = value.as_mut_ptr().cast::<c_char>();
            ffi::calmix_store_get(self.0.as_ptr(), key.as_ptr(), buffer, value.len(), error)
        })?;
        Ok(text_of(&value))
    }

    /// Waits until a key is set.
    pub(crate) fn wait(&self, key: &str, timeout: Duration) -> Result<(), C10dError> {
        let key = c_string(key)?;
        // SAFETY: as above.
        call(|error| unsafe {
            ffi::calmix_store_wait(self.0.as_ptr(), key.as_ptr(), milliseconds(timeout), error)
        })
    }

    /// Returns whether all keys are set, in one request.
    pub(crate) fn has(&self, keys: &[String]) -> Result<bool, C10dError> {
        let keys = keys.iter().map(|key| c_string(key)).collect::<Result<Vec<_>, _>>()?;
        let pointers: Vec<_> = keys.iter().map(|key| key.as_ptr()).collect();
        let mut all = false;
        // SAFETY: as above; `pointers` has `pointers.len()` strings, and each outlives the call.
        call(|error| unsafe {
            let (store, keys) = (self.0.as_ptr(), pointers.as_ptr());
            ffi::calmix_store_has(store, keys, pointers.len(), &raw mut all, error)
        })?;
        Ok(all)
    }

    pub(super) fn as_ptr(&self) -> *const CalmixStore {
        self.0.as_ptr()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: the shim made it with `new`; it is freed once, and nothing uses it afterwards.
        unsafe { ffi::calmix_store_free(self.0.as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn store_at_a_loopback_address_listens_there_alone() {
        let free =
            TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr()).expect("a free port");
        let minute = Duration::from_mins(1);
        let host = Store::host_on(free.ip(), free.port(), minute).expect("a store");
        let guest = Store::tcp("127.0.0.1", free.port(), false, minute).expect("a connection");
        host.set("key", "value").expect("a value");
        // A store does not wait for an answer to `set`; the host's own connection keeps the order.
        assert!(host.has(&["key".to_owned()]).expect("an answer"));
        assert!(guest.has(&["key".to_owned()]).expect("an answer"));
        // Another address of this host, as those of its network are.
        assert!(TcpStream::connect(("127.0.0.2", free.port())).is_err());
    }
}
