//! Guards calls into the crate `parquet`, which panics on some damaged files.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use parquet::errors::{ParquetError, Result};

thread_local! {
    /// Whether this thread is inside [`catch_panics`], whose panics become errors and are not printed.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Calls `read` and turns a panic into an error. State that `read` changed is dropped by the caller, because an error ends
/// the reading of a file.
///
/// # Errors
/// The error of `read`, or one about a damaged file if it panics.
pub fn catch_panics<T, E: From<ParquetError>>(read: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    static QUIET: Once = Once::new();
    // Installed once, in front of the present hook: threads that each replaced and restored the hook could lose it.
    QUIET.call_once(|| {
        let print = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                print(panic);
            }
        }));
    });
    let outer = IS_GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(read));
    IS_GUARDED.set(outer);
    result.unwrap_or_else(|_| Err(ParquetError::General("the file is damaged".into()).into()))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn only_guarded_panics_are_silent() {
        static PRINTED: Mutex<Vec<String>> = Mutex::new(Vec::new());
        set_hook(Box::new(|panic| {
            let text = panic.payload().downcast_ref::<&str>().unwrap_or(&"");
            PRINTED.lock().unwrap().push((*text).to_owned());
        }));
        let read = || catch_panics(|| -> Result<()> { panic!("within") });
        assert!(read().unwrap_err().to_string().contains("the file is damaged"));
        let other = std::thread::spawn(|| panic!("in another thread")).join();
        let after = catch_unwind(|| panic!("after a guarded call"));
        assert!(other.is_err() && after.is_err());
        assert_eq!(*PRINTED.lock().unwrap(), ["in another thread", "after a guarded call"]);
    }
}
