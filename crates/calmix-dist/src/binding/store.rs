//! A store: a few keys that all processes see.

use std::ffi::c_char;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::time::Duration;

use super::foreign::{self, CalmixStore};
use super::{Thrown, c_string, call, milliseconds, text_of};

/// A few keys that all processes see.
pub(crate) struct Store(NonNull<CalmixStore>);

// SAFETY: c10d's stores belong to no thread: they own sockets or a path, and lock around each use.
unsafe impl Send for Store {}

impl Store {
    /// The store at an address; one process serves it, inside its own.
    pub(crate) fn tcp(host: &str, port: u16, serves: bool, timeout: Duration) -> Result<Self, Thrown> {
        let (host, timeout) = (c_string(host)?, milliseconds(timeout));
        // SAFETY: `host` ends with a zero and outlives the call, which copies it; the other two are places to write.
        Self::made(|store, said| unsafe {
            foreign::calmix_store_tcp(host.as_ptr(), port, serves, timeout, store, said)
        })
    }

    /// A store in a file, for processes of one machine.
    pub(crate) fn file(path: &Path, size: usize, timeout: Duration) -> Result<Self, Thrown> {
        let path = path.to_str().ok_or_else(|| Thrown::new("the path of the store is not UTF-8"))?;
        let (path, size, timeout) = (c_string(path)?, super::group::c_int(size)?, milliseconds(timeout));
        // SAFETY: as above.
        Self::made(|store, said| unsafe {
            foreign::calmix_store_file(path.as_ptr(), size, timeout, store, said)
        })
    }

    /// The same store with every key behind a prefix.
    pub(crate) fn prefixed(&self, prefix: &str) -> Result<Self, Thrown> {
        let prefix = c_string(prefix)?;
        // SAFETY: as above; `self` is alive, and the new store shares the inner one by counting references.
        Self::made(|store, said| unsafe {
            foreign::calmix_store_prefix(self.0.as_ptr(), prefix.as_ptr(), store, said)
        })
    }

    /// A second connection to the same store, so that one thread may wait while another writes.
    pub(crate) fn connect_again(&self) -> Result<Self, Thrown> {
        // SAFETY: `self` is alive; the other two are places to write.
        Self::made(|store, said| unsafe { foreign::calmix_store_clone(self.0.as_ptr(), store, said) })
    }

    fn made(
        make: impl FnOnce(*mut *mut CalmixStore, foreign::Said) -> std::ffi::c_int,
    ) -> Result<Self, Thrown> {
        let mut store = ptr::null_mut();
        call(|said| make(&raw mut store, said))?;
        NonNull::new(store).map(Self).ok_or_else(|| Thrown::new("c10d made no store"))
    }

    pub(crate) fn set(&self, key: &str, value: &str) -> Result<(), Thrown> {
        let (key, value) = (c_string(key)?, c_string(value)?);
        // SAFETY: `self` is alive; both strings end with a zero and outlive the call, which copies them.
        call(|said| unsafe { foreign::calmix_store_set(self.0.as_ptr(), key.as_ptr(), value.as_ptr(), said) })
    }

    /// Adds to a counter that begins at zero, and tells its sum.
    pub(crate) fn add(&self, key: &str, amount: i64) -> Result<i64, Thrown> {
        let (key, mut sum) = (c_string(key)?, 0);
        // SAFETY: as above; `sum` is a place to write that outlives the call.
        call(|said| unsafe {
            foreign::calmix_store_add(self.0.as_ptr(), key.as_ptr(), amount, &raw mut sum, said)
        })?;
        Ok(sum)
    }

    /// A short value; waits until it is there.
    pub(crate) fn get(&self, key: &str) -> Result<String, Thrown> {
        let (key, mut value) = (c_string(key)?, [0_u8; 256]);
        // SAFETY: as above; at most `value.len()` bytes are written into `value`.
        call(|said| unsafe {
            let place = value.as_mut_ptr().cast::<c_char>();
            foreign::calmix_store_get(self.0.as_ptr(), key.as_ptr(), place, value.len(), said)
        })?;
        Ok(text_of(&value))
    }

    /// Waits until a key is there.
    pub(crate) fn wait(&self, key: &str, timeout: Duration) -> Result<(), Thrown> {
        let key = c_string(key)?;
        // SAFETY: as above.
        call(|said| unsafe {
            foreign::calmix_store_wait(self.0.as_ptr(), key.as_ptr(), milliseconds(timeout), said)
        })
    }

    /// Whether all keys are there, at once.
    pub(crate) fn has(&self, keys: &[String]) -> Result<bool, Thrown> {
        let keys = keys.iter().map(|key| c_string(key)).collect::<Result<Vec<_>, _>>()?;
        let pointers: Vec<_> = keys.iter().map(|key| key.as_ptr()).collect();
        let mut all = false;
        // SAFETY: as above; `pointers` are as many as is said, and each outlives the call.
        call(|said| unsafe {
            let (store, keys) = (self.0.as_ptr(), pointers.as_ptr());
            foreign::calmix_store_has(store, keys, pointers.len(), &raw mut all, said)
        })?;
        Ok(all)
    }

    pub(super) fn as_ptr(&self) -> *const CalmixStore {
        self.0.as_ptr()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: made by `new` in the shim, freed once, and nothing uses it afterwards.
        unsafe { foreign::calmix_store_free(self.0.as_ptr()) }
    }
}
